/* SPDX-License-Identifier: Apache-2.0 */
/* signals [PID...]: asks whether each PID can be signalled; without any, sends every signal to 1
 * and to everybody. */
#define _GNU_SOURCE
#include "attempt.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char name[32];
    for (int i = 1; i < argc; i++) {
        snprintf(name, sizeof name, "probe-%s", argv[i]);
        attempt(name, kill(atoi(argv[i]), 0));
    }
    if (argc > 1)
        return 0;
    for (int s = 1; s <= 64; s++)
        (void)kill(1, s);
    printf("sent 1\n");
    fflush(stdout);
    for (int s = 1; s <= 64; s++)
        if (s != SIGKILL && s != SIGSTOP) {
            (void)signal(s, SIG_IGN);
            (void)kill(-1, s);
        }
    printf("sent all\n");
    fflush(stdout);
    (void)kill(-1, SIGKILL); /* everybody but us and pid 1 */
    printf("sent kill\n");
    return 0;
}
