// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// Archive is the store of the executor that serves its records, with the facts of the cluster about them.
type Archive struct {
	Store evidence.Store
	Known Known
	// Warnings name the sources that the records cannot be compared with.
	Warnings []string
}

// OpenArchive finds the executor in Plumbline's namespace that serves its records, and reads the ends of the chains, their checkpoints and
// the keys. A caller who may not read the checkpoints is warned. The error is an *AwayError if no executor serves
// records, and a *NoKeyError if it has published no key.
func OpenArchive(ctx context.Context, c client.Reader, proxy Proxy, system string) (a *Archive, err error) {
	a = &Archive{}
	if a.Known.Heads, err = ReadHeads(ctx, c, system); err != nil {
		return nil, fmt.Errorf("reading how far the chains go: %w", err)
	}
	switch a.Known.Anchors, err = ReadAnchors(ctx, c, system); {
	case apierrors.IsForbidden(err):
		a.Warnings = append(a.Warnings, fmt.Sprintf("You may not get the ConfigMap %s/%s: the ledgers alone tell where the chains end.", system, AnchorConfigMap))
	case err != nil:
		return nil, err
	}
	if a.Known.Keys, err = ReadKeys(ctx, c, system); err != nil {
		return nil, err
	}
	a.Store, err = OpenServed(ctx, c, proxy, system)
	return a, err
}

// Find verifies the records of the archive, and returns the good ones that are wanted.
func (a *Archive) Find(ctx context.Context, wanted func(*evidence.Record) bool) (*Found, error) {
	return Find(ctx, a.Store, &a.Known, wanted)
}

// ProblemsOf returns the problems of a chain, an end that is not known included.
func (f *Found) ProblemsOf(uid string) (problems []string) {
	for _, p := range f.Report.Problems {
		if p.Chain == uid {
			problems = append(problems, fmt.Sprintf("%s %s", p.Kind, p))
		}
	}
	chains := f.Chains()
	if i := slices.IndexFunc(chains, func(c wording.Chain) bool { return c.UID == uid }); i >= 0 && chains[i].IsOpen() {
		problems = append(problems, "the end of the chain is not known: no ledger tells it")
	}
	return problems
}
