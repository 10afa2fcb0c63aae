// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"

	"github.com/plumbline-dev/plumbline/internal/agent"
)

// connector carries ports out, and counts requests.
type connector interface {
	agent.Connector
	agent.Counter
}

// program is the part of a process that differs between connectors.
type program struct {
	connector connector
	// child is nil if the program runs by itself.
	child *agent.Child
	// passed are signals to the agent that go on to the program.
	passed []os.Signal
	// close frees the connector after the last use.
	close func() error
}

// makers are the values of --connector.
var makers = map[string]func(*settings) (*program, error){"haproxy": newHAProxy, "nginx": newNGINX}
