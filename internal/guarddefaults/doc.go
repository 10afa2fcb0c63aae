// SPDX-License-Identifier: Apache-2.0

// Package guarddefaults decides which GuardDefaults are in force, see [Active]. One is
// install-wide and each Environment may have one more; of two that
// compete the older is in force, so that a second one, made by mistake, changes
// nothing until the first is removed.
package guarddefaults
