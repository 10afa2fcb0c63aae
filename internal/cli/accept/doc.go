// SPDX-License-Identifier: Apache-2.0

// Package accept is "kubectl plumbline accept": it authorizes the state that runs now.
package accept
