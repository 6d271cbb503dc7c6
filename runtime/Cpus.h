//===- Cpus.h - how many CPUs the process may use ------------------------===//
#ifndef KERATIN_RUNTIME_CPUS_H
#define KERATIN_RUNTIME_CPUS_H

#ifdef __cplusplus
extern "C" {
#endif

/// CPUs that the process may use by its affinity and the quotas of its control
/// groups, from 1. A quota counts whole CPUs: threads beyond it would be halted
/// for part of the time, with all others waiting for them. Never allocates.
int ktn_cpu_limit(void);

/// The part of the control groups, with `root` before the paths /proc and /sys:
/// "" but in tests. 0 without a quota.
int ktn_cgroup_limit(const char *root);

#ifdef __cplusplus
}
#endif
#endif /* KERATIN_RUNTIME_CPUS_H */
