// SPDX-License-Identifier: Apache-2.0

// Package console runs `kubectl plumbline console` in this process as a user, until a test ends.
package console
