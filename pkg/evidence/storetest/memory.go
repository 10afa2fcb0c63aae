// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// Memory is a store in memory whose content a test may look at and damage.
type Memory struct {
	mu      sync.Mutex
	objects map[string][]byte
	// Fault, if set, is asked before and after each create; an error ends it
	// there, as if the answer were lost.
	Fault func(op string) error
}

var _ evidence.Store = (*Memory)(nil)

// The two moments of a create at which Fault is asked.
const (
	BeforeCreate = "before create"
	AfterCreate  = "after create"
)

// Create a record.
func (m *Memory) Create(ctx context.Context, name string, data []byte) error {
	if err := ctx.Err(); err != nil {
		return lost("create", name, err)
	}
	if err := m.fault(BeforeCreate); err != nil {
		return lost("create", name, err)
	}
	m.mu.Lock()
	_, taken := m.objects[name]
	if !taken {
		m.put(name, data)
	}
	m.mu.Unlock()
	if taken {
		return fmt.Errorf("%s: %w", name, evidence.ErrExists)
	}
	if err := m.fault(AfterCreate); err != nil {
		return lost("create", name, err)
	}
	return nil
}

func (m *Memory) fault(op string) error {
	if m.Fault == nil {
		return nil
	}
	return m.Fault(op)
}

func (m *Memory) put(name string, data []byte) {
	if m.objects == nil {
		m.objects = map[string][]byte{}
	}
	m.objects[name] = slices.Clone(data)
}

// Read a record.
func (m *Memory) Read(ctx context.Context, name string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, lost("read", name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.objects[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, evidence.ErrNotFound)
	}
	return slices.Clone(data[:min(len(data), evidence.MaxSize(name)+1)]), nil
}

// List names.
func (m *Memory) List(ctx context.Context, chain string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := ctx.Err(); err != nil {
			yield("", lost("list", chain, err))
			return
		}
		for _, name := range m.Names() {
			if chain != "" && !strings.HasPrefix(name, chain+"/") {
				continue
			}
			if !yield(name, nil) {
				return
			}
		}
	}
}

// Ready is as the context is.
func (m *Memory) Ready(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return lost("probe", "", err)
	}
	return nil
}

// Names of all that is there, in order.
func (m *Memory) Names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.objects))
}

// Put anything anywhere, as somebody might who can write to the store.
func (m *Memory) Put(name string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(name, data)
}

// Remove a name.
func (m *Memory) Remove(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, name)
}

func lost(op, name string, err error) error {
	return &evidence.StoreError{Op: op, Name: name, Reason: evidence.StoreUnreachable, Err: err}
}
