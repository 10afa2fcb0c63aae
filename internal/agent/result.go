// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"

	"github.com/plumbline-dev/plumbline/internal/agent/follow"
	"github.com/plumbline-dev/plumbline/internal/connector/reload"
)

// resultOf returns the result of an attempt, with the processes of the program that are late.
func resultOf[P fmt.Stringer](late []P, err error) follow.Result {
	r := follow.Result{Err: refusalOf(err)}
	for _, process := range late {
		r.Late = append(r.Late, process.String())
	}
	return r
}

// refusalOf returns the refusal that package follow knows; any other error is returned as it is.
func refusalOf(err error) error {
	if refused, is := errors.AsType[*reload.RefusedError](err); is {
		return &follow.RefusedError{Said: refused.Error()}
	}
	return err
}

var stepPoints = map[reload.Step]Point{reload.Checked: AfterCheck, reload.Written: AfterFiles, reload.Reloaded: AfterReload}

// reachPoint ends the process of a test that fails at a step.
func reachPoint(s reload.Step) { at(stepPoints[s]) }
