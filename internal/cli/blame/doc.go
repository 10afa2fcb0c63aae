// SPDX-License-Identifier: Apache-2.0

// Package blame is "kubectl plumbline blame": it shows the author of each change to an object.
package blame
