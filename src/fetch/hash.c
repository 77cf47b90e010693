/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/hash.h"

#include <openssl/evp.h>

EVP_MD_CTX *silt_hash_new(void)
{
    EVP_MD_CTX *h = EVP_MD_CTX_new();
    if (h && EVP_DigestInit_ex(h, EVP_sha256(), NULL) == 1)
        return h;
    EVP_MD_CTX_free(h);
    return NULL;
}

int silt_hash_add(EVP_MD_CTX *h, silt_slice bytes, struct silt_error *e)
{
    if (EVP_DigestUpdate(h, bytes.data, bytes.len) != 1)
        return silt_fail(e, SILT_INTERNAL, "go on with a sha256");
    return 0;
}

int silt_hash_end(EVP_MD_CTX *h, uint8_t ret[SILT_DIGEST_SIZE], struct silt_error *e)
{
    unsigned size = 0;
    if (EVP_DigestFinal_ex(h, ret, &size) != 1 || size != SILT_DIGEST_SIZE)
        return silt_fail(e, SILT_INTERNAL, "finish a sha256");
    return 0;
}

int silt_hash_again(EVP_MD_CTX *h, struct silt_error *e)
{
    if (EVP_DigestInit_ex(h, EVP_sha256(), NULL) != 1)
        return silt_fail(e, SILT_INTERNAL, "start a sha256");
    return 0;
}
