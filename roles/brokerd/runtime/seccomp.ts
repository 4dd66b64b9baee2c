// The system calls a tool may make, as data, and the profile Podman reads. Everything that is not
// named here is refused with EPERM. The list is for x86_64 only: a call through the i386 or x32 entry
// kills the program.
//
// It is written out and never derived from another profile at install time: a profile copied without
// its architecture block loses `arch_prctl`, and then nothing starts.

const EPERM = 1;
const ENOSYS = 38;

/** Allowed whatever the arguments, by family. */
export const ALLOWED: Readonly<Record<string, string>> = {
  descriptors: `read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek close
    close_range dup dup2 dup3 fcntl ioctl flock fsync fdatasync sync syncfs sync_file_range truncate
    ftruncate fallocate fadvise64 readahead copy_file_range sendfile splice tee pipe pipe2`,
  paths: `access faccessat faccessat2 stat lstat fstat newfstatat statx statfs fstatfs getcwd chdir
    fchdir mkdir mkdirat rmdir link linkat symlink symlinkat readlink readlinkat rename renameat
    renameat2 unlink unlinkat chown fchown lchown fchownat utime utimes utimensat futimesat umask
    getdents getdents64`,
  attributes: `getxattr lgetxattr fgetxattr setxattr lsetxattr fsetxattr listxattr llistxattr
    flistxattr removexattr lremovexattr fremovexattr inotify_init inotify_init1 inotify_add_watch
    inotify_rm_watch fanotify_mark`,
  memory: `brk mmap mprotect munmap mremap madvise msync mincore mlock mlock2 mlockall munlock
    munlockall membarrier memfd_create remap_file_pages pkey_alloc pkey_free pkey_mprotect
    get_mempolicy process_mrelease`,
  processes: `fork vfork execve execveat exit exit_group wait4 waitid kill tkill tgkill pause getpid
    gettid getppid getpgid getpgrp setpgid getsid setsid set_tid_address set_robust_list
    get_robust_list rseq arch_prctl set_thread_area get_thread_area prctl pidfd_open
    pidfd_send_signal restart_syscall seccomp landlock_create_ruleset landlock_add_rule
    landlock_restrict_self`,
  identity: `getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid
    setregid setresuid setresgid setfsuid setfsgid setgroups capget capset`,
  scheduling: `sched_yield sched_getaffinity sched_setaffinity sched_getattr sched_setattr
    sched_getparam sched_setparam sched_getscheduler sched_setscheduler sched_get_priority_max
    sched_get_priority_min sched_rr_get_interval getpriority setpriority ioprio_get ioprio_set
    getrlimit setrlimit prlimit64 getrusage times sysinfo uname getcpu`,
  signals: `rt_sigaction rt_sigprocmask rt_sigpending rt_sigqueueinfo rt_tgsigqueueinfo rt_sigreturn
    rt_sigsuspend rt_sigtimedwait sigaltstack signalfd signalfd4 alarm getitimer setitimer`,
  time: `clock_getres clock_gettime clock_nanosleep nanosleep gettimeofday time timer_create
    timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime
    timerfd_settime`,
  waiting: `poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_wait
    epoll_wait_old epoll_pwait epoll_pwait2 eventfd eventfd2 futex io_setup io_submit io_getevents
    io_cancel io_destroy getrandom`,
  sockets:
    `bind listen accept accept4 connect shutdown getsockname getpeername getsockopt setsockopt
    sendto sendmsg sendmmsg recvfrom recvmsg recvmmsg`,
};

/** Which argument of each call holds a mode that may not carry a setuid or setgid bit. */
const MODE_ARGUMENT: Readonly<Record<string, number>> = {
  open: 2,
  openat: 3,
  creat: 1,
  chmod: 1,
  fchmod: 1,
  fchmodat: 2,
  fchmodat2: 2,
};
const SET_ID_BITS = 0o6000;
const NAMESPACE_FLAGS = 0x7e020000;
const AF_UNIX = 1;

/** The names of one table, sorted. */
export function namesOf(table: Readonly<Record<string, string>>): readonly string[] {
  return Object.values(table).flatMap((names) => names.split(/\s+/)).toSorted();
}

/** An argument whose bits under `mask` are all zero. In the profile the mask stands in `value`. */
function noneOf(index: number, mask: number) {
  return { index, value: mask, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" };
}

function equals(index: number, value: number) {
  return { index, value, op: "SCMP_CMP_EQ" };
}

function allow(names: readonly string[], args: readonly object[] = []) {
  return args.length === 0
    ? { names, action: "SCMP_ACT_ALLOW" }
    : { names, action: "SCMP_ACT_ALLOW", args };
}

/** The profile as the JSON text that Podman reads. */
export function seccompProfile(): string {
  const modes = Object.entries(MODE_ARGUMENT)
    .map(([name, index]) => allow([name], [noneOf(index, SET_ID_BITS)]));
  return JSON.stringify({
    defaultAction: "SCMP_ACT_ERRNO",
    defaultErrnoRet: EPERM,
    architectures: ["SCMP_ARCH_X86_64"],
    syscalls: [
      allow(namesOf(ALLOWED)),
      allow(["socket"], [equals(0, AF_UNIX)]),
      allow(["socketpair"], [equals(0, AF_UNIX)]),
      allow(["clone"], [noneOf(0, NAMESPACE_FLAGS)]),
      ...modes,
      // Their flags or modes lie in memory, where no filter sees them; callers fall back on ENOSYS.
      { names: ["clone3", "openat2"], action: "SCMP_ACT_ERRNO", errnoRet: ENOSYS },
    ],
  });
}
