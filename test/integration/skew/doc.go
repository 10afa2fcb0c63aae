// SPDX-License-Identifier: Apache-2.0

// Package skew has Helm upgrade the chart from the former release to the present one, and
// roll the upgrade back, on a real kube-apiserver. Objects of all kinds lie there, and users
// write objects meanwhile. Then the servers of one release run beside the kinds and the
// rights of the other release, as they do for the minutes of an upgrade and of a rollback.
//
// testdata/former.tgz is the chart of the former release, and testdata/former.commit its
// commit; `make former-release COMMIT=…` replaces both. The servers of the former release
// run in `make skew-long` alone, which compiles them.
package skew
