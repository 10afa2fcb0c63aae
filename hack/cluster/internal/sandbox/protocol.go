// SPDX-License-Identifier: Apache-2.0

package sandbox

import "github.com/plumbline-dev/plumbline/hack/cluster/internal/plan"

// order is what the launcher tells the first process: exactly one field is set, and
// Owned beside Commit.
type order struct {
	Setup  *plan.Sandbox `json:"setup,omitempty"`
	Start  *plan.Process `json:"start,omitempty"`
	Commit bool          `json:"commit,omitempty"` // from now on live without the launcher
	Owned  bool          `json:"owned,omitempty"`  // but end with the process of the lifeline
}

// report is what the first process tells the launcher.
type report struct {
	Done   bool   `json:"done,omitempty"`   // the last order is carried out
	Error  string `json:"error,omitempty"`  // the last order failed
	Exited string `json:"exited,omitempty"` // name of a daemon that ended
	Status string `json:"status,omitempty"` // how it ended
}

// eventsDescriptor is the file descriptor on which the first process reports:
// the first after the standard three.
const eventsDescriptor = 3
