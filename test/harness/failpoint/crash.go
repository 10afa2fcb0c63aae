// SPDX-License-Identifier: Apache-2.0

package failpoint

// Crash is a point at which the executor dies.
type Crash struct {
	When  string // before or after
	Write string
}

// Before is the moment before a write is sent.
func Before(write string) Crash { return Crash{"before", write} }

// After is the moment after the answer to a write has come.
func After(write string) Crash { return Crash{"after", write} }

func (c Crash) String() string { return c.When + " " + c.Write }

// Fault is how an executor is told, see cmd/assessor/failpoint.go.
func (c Crash) Fault() string { return "kill:" + c.When + ":" + c.Write }

// Column is the column of a table that has one for each moment.
func (c Crash) Column() int { return map[string]int{"before": 1, "after": 2}[c.When] }

// UntilKilledAt waits until a failpoint has killed the executor, at this very write.
func (e *Executor) UntilKilledAt(point Crash) {
	e.t.Helper()
	e.UntilKilled()
	if made := e.Writes(); made[len(made)-1] != point.Write {
		e.t.Errorf("it died at %q", made[len(made)-1])
	}
}
