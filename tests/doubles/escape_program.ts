// A small static C program for the test image: it makes the system calls that a tool must not make and
// prints what the kernel said, one `name errno` a line. The names come from the list beside it.
import { namesOf } from "../../roles/brokerd/runtime/seccomp.ts";
import { REFUSED } from "./refused_calls.ts";

const GCC = "/usr/bin/gcc";

/** Calls with arguments that would do something, and a few that must still work. */
const SOURCE = `
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *name, long result) {
  printf("%s %d\\n", name, result < 0 ? errno : 0);
  fflush(stdout);
}
#define CALL(name) errno = 0, say("call:" #name, syscall(SYS_##name, 0, 0, 0, 0, 0, 0))

static void walls(void) {
  NAMES
  say("newuser", unshare(CLONE_NEWUSER));
  say("newns", unshare(CLONE_NEWNS));
  say("newnet", unshare(CLONE_NEWNET));
  say("clone-newuser", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
  say("clone3", syscall(SYS_clone3, 0, 0));
  say("openat2", syscall(SYS_openat2, AT_FDCWD, "/", 0, 0));
  say("mount", mount("none", "/tmp", "tmpfs", 0, ""));
  say("umount", umount2("/proc", MNT_DETACH));
  say("remount", mount("none", "/", "", MS_REMOUNT, ""));
  say("ptrace", ptrace(PTRACE_TRACEME, 0, 0, 0));
  say("setuid", setuid(0));
  say("chroot", chroot("/tmp"));
  int families[] = {2, 3, 10, 15, 16, 17, 29, 30, 31, 38, 40, 44};
  for (unsigned i = 0; i < sizeof families / sizeof *families; i++) {
    char name[32];
    snprintf(name, sizeof name, "socket-%d", families[i]);
    say(name, socket(families[i], SOCK_DGRAM, 0));
  }
  say("ok:socket-unix", socket(AF_UNIX, SOCK_STREAM, 0));
  int file = open("/tmp/f", O_CREAT | O_RDWR, 0700);
  say("ok:open", file);
  say("set-id-open", open("/tmp/g", O_CREAT | O_RDWR, 04755));
  say("set-id-chmod", chmod("/tmp/f", 04755));
  say("set-gid-chmod", fchmod(file, 02755));
  say("ok:chmod", chmod("/tmp/f", 0755));
  say("write-root", open("/x", O_CREAT | O_RDWR, 0600));
  say("write-dev", open("/dev/x", O_CREAT | O_RDWR, 0600));
  say("write-image", open("/tk/read_file.js", O_RDWR));
  say("write-proc", open("/proc/sys/kernel/hostname", O_RDWR));
}

/** Forks until refused; prints how many there were. */
static void forks(void) {
  int count = 0;
  for (; count < 2000; count++) {
    pid_t child = fork();
    if (child < 0) break;
    if (child == 0) { close(0); close(1); close(2); for (;;) pause(); }
  }
  printf("forks %d\\n", count);
  fflush(stdout);
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "forks") == 0) forks();
  else if (argc > 1 && strcmp(argv[1], "exec") == 0) { execl(argv[2], argv[2], (char *)0); say("exec", -1); }
  else if (argc > 1 && strcmp(argv[1], "i386") == 0) { __asm__ volatile("int $0x80" : : "a"(20)); say("i386", 0); }
  else walls();
  return 0;
}
`;

/** The program's bytes, or null where there is no compiler. */
export async function escapeProgram(): Promise<Uint8Array<ArrayBuffer> | null> {
  const names = namesOf(REFUSED).map((name) => `\n#ifdef SYS_${name}\n  CALL(${name});\n#endif\n`)
    .join("");
  const source = SOURCE.replace("NAMES", names);
  const folder = await Deno.makeTempDir({ prefix: "bx-c-" });
  try {
    await Deno.writeTextFile(`${folder}/escape.c`, source);
    const { code, stderr } = await new Deno.Command(GCC, {
      args: ["-static", "-O1", "-o", `${folder}/escape`, `${folder}/escape.c`],
    }).output();
    if (code !== 0) throw new Error(new TextDecoder().decode(stderr));
    return await Deno.readFile(`${folder}/escape`);
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return null;
    throw thrown;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
