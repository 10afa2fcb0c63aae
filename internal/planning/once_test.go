// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"errors"
	"testing"
	"time"
)

// counted is a Source that counts how often its World is read.
type counted struct {
	Source
	reads int
	err   error
}

func (s *counted) World(context.Context, time.Time) (*World, error) {
	s.reads++
	return &World{}, s.err
}

func TestOnce_ReadsTheWorldASingleTime(t *testing.T) {
	for name, err := range map[string]error{"a world that is read": nil, "a world that cannot be read": errors.New("forbidden")} {
		t.Run(name, func(t *testing.T) {
			source := &counted{err: err}
			once := &Once{Source: source}
			first, firstErr := once.World(t.Context(), time.Time{})
			second, secondErr := once.World(t.Context(), time.Time{}.Add(time.Hour))
			if source.reads != 1 || first != second || !errors.Is(firstErr, err) || !errors.Is(secondErr, err) {
				t.Errorf("%d reads gave %p and %p, %v and %v", source.reads, first, second, firstErr, secondErr)
			}
		})
	}
}
