// SPDX-License-Identifier: Apache-2.0

//go:build failpoints

package agent

import (
	"os"
	"syscall"
)

// at kills the process at the point that PLUMBLINE_AGENT_FAILPOINT names, once the file that
// PLUMBLINE_AGENT_FAILPOINT_ARMED names is there. The file is removed, so the next process lives.
func at(p Point) {
	if os.Getenv("PLUMBLINE_AGENT_FAILPOINT") != string(p) || os.Remove(os.Getenv("PLUMBLINE_AGENT_FAILPOINT_ARMED")) != nil {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // it does not return
	select {}
}
