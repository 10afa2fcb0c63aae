// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/campaign"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/mutation"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/schemata"
)

// Schemata is one test binary of a package with many mutants, of its own files and of those
// that it imports.
type Schemata struct {
	runner Runner
	dir    string
	binary string
}

// NewSchemata builds the tests of a package with all mutants, and runs them with none of
// them: they must pass, and the time that they take bounds that of the mutants. It writes
// below scratch.
func NewSchemata(ctx context.Context, target Target, scratch string, mutants []mutation.Mutant) (*Schemata, error) {
	s := &Schemata{runner: Runner{target: target, scratch: scratch, limit: 10 * time.Minute}}
	var err error
	if s.dir, err = os.MkdirTemp(scratch, "schemata-"); err != nil {
		return nil, fmt.Errorf("making a directory: %w", err)
	}
	overlay, err := schemata.WriteOverlay(target.Root, s.dir, mutants)
	if err != nil {
		return nil, err
	}
	var output []byte
	if s.binary, output, err = s.runner.build(ctx, s.dir, overlay); err != nil {
		return nil, fmt.Errorf("building the tests of %s with the mutants: %w: %s", target.Path, err, output)
	}
	var said bytes.Buffer
	begin := time.Now()
	if err := s.runner.start(ctx, s.binary, s.dir, &said); err != nil {
		return nil, fmt.Errorf("running the tests of %s without a mutant: %w: %s", target.Path, err, said.Bytes())
	}
	s.runner.limit = leastTime + timesOriginal*time.Since(begin)
	return s, nil
}

// TryMutant runs the tests with the mutant of a number, which counts from 1.
func (s *Schemata) TryMutant(ctx context.Context, number int) (campaign.Verdict, error) {
	dir, err := os.MkdirTemp(s.runner.scratch, "mutant-")
	if err != nil {
		return "", fmt.Errorf("making a directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	verdict, err := judge(ctx, s.runner.start(ctx, s.binary, dir, nil, schemata.Variable+"="+strconv.Itoa(number)))
	if err != nil {
		return "", fmt.Errorf("running mutant %d: %w", number, err)
	}
	return verdict, nil
}
