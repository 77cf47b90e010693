/* SPDX-License-Identifier: Apache-2.0 */
/* evil: what an attacker would have run as root, in the place of python3. Static. */
#include <sys/prctl.h>
#include <unistd.h>

int main(void)
{
    (void)prctl(PR_SET_NAME, "silt-evil", 0, 0, 0);
    for (;;)
        (void)pause();
}
