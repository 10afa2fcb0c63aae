// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"errors"
	"fmt"
	"slices"
)

// checkpointVersion is the first byte of a checkpoint.
const checkpointVersion = 1

// MaxCheckpoint is the size of a checkpoint in bytes.
const MaxCheckpoint = 3 << 10

// ErrMalformed says that bytes are no checkpoint. The measurement has to be restarted.
var ErrMalformed = errors.New("malformed checkpoint")

// VersionError says that a checkpoint is of a version that is not known here. The measurement has to
// be restarted.
type VersionError struct{ Version byte }

func (e *VersionError) Error() string {
	return fmt.Sprintf("version %d of the checkpoint is not known, want %d", e.Version, checkpointVersion)
}

// SizeError says that a state does not fit into a checkpoint: the router has too many parts.
type SizeError struct{ Parts, Bytes int }

func (e *SizeError) Error() string {
	return fmt.Sprintf("a checkpoint of %d parts has %d bytes, want at most %d", e.Parts, e.Bytes, MaxCheckpoint)
}

// Encode returns a checkpoint of at most [MaxCheckpoint] bytes. Where that is too little, parts that
// are gone are left out; a [SizeError] says that too many are left.
func (s *State) Encode() ([]byte, error) {
	kept := s.Clone()
	for {
		c := codec{writes: true, data: []byte{checkpointVersion}}
		c.state(kept)
		if len(c.data) <= MaxCheckpoint {
			return c.data, nil
		}
		gone := slices.IndexFunc(kept.parts, func(p part) bool { return p.gone })
		if gone < 0 {
			return nil, fmt.Errorf("writing the checkpoint of the judge: %w", &SizeError{len(kept.parts), len(c.data)})
		}
		kept.parts = slices.Delete(kept.parts, gone, gone+1)
	}
}

// Decode reads a checkpoint. Errors are a [VersionError], or wrap [ErrMalformed].
func Decode(data []byte) (*State, error) {
	if len(data) == 0 || len(data) > MaxCheckpoint {
		return nil, fmt.Errorf("reading the checkpoint of the judge: %d bytes: %w", len(data), ErrMalformed)
	}
	if data[0] != checkpointVersion {
		return nil, fmt.Errorf("reading the checkpoint of the judge: %w", &VersionError{data[0]})
	}
	s := New(DefaultR0, 0)
	c := codec{data: data[1:]}
	c.state(s)
	if c.problem == "" && len(c.data) > 0 {
		c.problem = "bytes after the end"
	}
	if c.problem == "" {
		c.problem = s.problem()
	}
	if c.problem != "" {
		return nil, fmt.Errorf("reading the checkpoint of the judge: %s: %w", c.problem, ErrMalformed)
	}
	return s, nil
}

// problem of a state that was read.
func (s *State) problem() string {
	for _, a := range []*arm{&s.canary, &s.control, &s.stage.canary, &s.stage.control} {
		if a.failed > a.over || a.errors.x > a.errors.n || a.latency.x > a.latency.n {
			return "more failures than requests"
		}
	}
	for _, list := range []*voices{&s.loudest, &s.stage.busiest} {
		for i := range list {
			if v := &list[i]; v.x > v.n || v.stageX > v.stageN || (v.proxy == 0) != (v.credit == 0) {
				return "a proxy that cannot be"
			}
		}
	}
	for i := range s.parts {
		if i > 0 && s.parts[i-1].name >= s.parts[i].name {
			return "parts that are not in order"
		}
	}
	if (s.threshold < 0) != (s.width == 0) || s.threshold >= max(s.width, 1) {
		return "a bucket that cannot be"
	}
	return ""
}
