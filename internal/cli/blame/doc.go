// SPDX-License-Identifier: Apache-2.0

// Package blame is "kubectl plumbline blame": it shows who made each change to an object.
package blame
