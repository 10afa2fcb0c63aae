// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"errors"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Contract(t, func(*testing.T) evidence.Store { return &storetest.Memory{} })
}

// TestMemory_LosesAnswers: before a create nothing is there, after it the record is.
func TestMemory_LosesAnswers(t *testing.T) {
	for at, want := range map[string]int{storetest.BeforeCreate: 0, storetest.AfterCreate: 1} {
		m := &storetest.Memory{Fault: func(op string) error {
			if op == at {
				return errors.New("lost")
			}
			return nil
		}}
		if err := m.Create(t.Context(), evidence.Name("chain", 1), nil); err == nil {
			t.Errorf("%s: no error", at)
		}
		if got := len(m.Names()); got != want {
			t.Errorf("%s: %d objects, want %d", at, got, want)
		}
	}
}
