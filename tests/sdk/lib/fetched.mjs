// SPDX-License-Identifier: Apache-2.0
// Imported first: fetches packages and builds the library.

import { packages as clients } from '../../client/lib/workerd.mjs';
import { packages, packed, programs } from './project.mjs';

clients();
packages();
programs();
packed();
