/* SPDX-License-Identifier: Apache-2.0 */
#include "super/notify.h"
#include "base/own.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

void silt_notify(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (path == NULL || strlen(path) >= sizeof(to.sun_path))
        return;
    memcpy(to.sun_path, path, strlen(path));
    if (to.sun_path[0] == '@')
        to.sun_path[0] = 0; /* an abstract name */
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    silt_auto_fd fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    /* If the service manager does not listen, there is no one to report the failure to. */
    if (fd >= 0)
        (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&to, len);
}
