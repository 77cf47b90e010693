/* SPDX-License-Identifier: Apache-2.0 */
/* hash: incremental SHA-256. */
#pragma once

#include "base/slice.h"
#include "wire/priv.h"

#include <openssl/types.h>

EVP_MD_CTX *silt_hash_new(void); /* NULL: no memory */
int silt_hash_add(EVP_MD_CTX *h, silt_slice bytes, struct silt_error *e);
int silt_hash_end(EVP_MD_CTX *h, uint8_t ret[SILT_DIGEST_SIZE], struct silt_error *e);
/* Resets it for other bytes. */
int silt_hash_again(EVP_MD_CTX *h, struct silt_error *e);
