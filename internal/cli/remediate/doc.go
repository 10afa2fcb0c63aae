// SPDX-License-Identifier: Apache-2.0

// Package remediate is "kubectl plumbline remediate": it asks a policy to put drifted objects
// back now, in the name of the user.
package remediate
