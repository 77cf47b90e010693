// SPDX-License-Identifier: Apache-2.0
// Imported before inside.mjs: fetches the real clients while there is still a network.

import { packages } from './workerd.mjs';

packages();
