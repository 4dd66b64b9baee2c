// System calls that the profile must refuse, as everything that it does not name. They are written out
// because each is tried from inside a container.
export const REFUSED: Readonly<Record<string, string>> = {
  namespaces:
    `unshare setns mount umount2 pivot_root chroot fsopen fsmount fsconfig fspick move_mount
    open_tree mount_setattr`,
  others: `ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp add_key
    request_key keyctl name_to_handle_at open_by_handle_at`,
  kernel:
    `bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register memfd_secret
    vmsplice fanotify_init futex_waitv io_pgetevents`,
  special_files: `mknod mknodat`,
  ipc: `semget semop semctl semtimedop shmget shmat shmctl shmdt msgget msgsnd msgrcv msgctl mq_open
    mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr`,
  host:
    `settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname syslog reboot acct
    swapon swapoff quotactl quotactl_fd init_module finit_module delete_module kexec_load
    kexec_file_load lookup_dcookie vhangup personality iopl ioperm modify_ldt mbind set_mempolicy
    set_mempolicy_home_node move_pages migrate_pages`,
};
