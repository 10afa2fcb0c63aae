// SPDX-License-Identifier: Apache-2.0

// Package busy tests hack/busy.sh.
package busy
