// SPDX-License-Identifier: Apache-2.0

package records

import (
	"cmp"
	"context"

	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// Known has the facts about records besides the records. Without heads and anchors, missing records at the end
// of a chain are not seen.
type Known struct {
	Keys    Keys
	Heads   map[string]evidence.Head
	Anchors map[string][]evidence.Checkpoint
	// Plans have ended, and Running counts those that have not.
	Plans   []evidence.PlanStatus
	Running int
	// Chains are those that are read; all when empty.
	Chains []string
}

// Found are the good records that were wanted, in the order of their chains, and the findings about all records.
type Found struct {
	Records []evidence.Sealed
	Report  *evidence.Report
	// Owners are those of chains, by uid, as far as good records tell.
	Owners map[string]Owner
	known  *Known
}

// Owner is the object that the records of a chain are about.
type Owner struct {
	// Policy is the name of the policy; empty in a chain of releases.
	Policy string
	// Releases names the Environment whose releases the chain is about, or is [NoEnvironment].
	Releases string
}

// NoEnvironment stands for releases that belong to no Environment.
const NoEnvironment = "none"

// Find verifies records, and returns the good ones that are wanted. An error says that the store could not be read
// to the end.
func Find(ctx context.Context, store evidence.Store, known *Known, wanted func(*evidence.Record) bool) (*Found, error) {
	found := &Found{Owners: map[string]Owner{}, known: known}
	report, err := evidence.Verify(ctx, store, known.Keys.Ring, evidence.Options{
		Chains: known.Chains, Ends: known.Keys.Ends, Heads: known.Heads, Anchors: known.Anchors, Plans: known.Plans,
		Each: func(s evidence.Sealed) {
			found.own(&s.Record)
			if wanted(&s.Record) {
				found.Records = append(found.Records, s)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	found.Report = report
	return found, nil
}

// own notes the object that the chain of a record is about.
func (f *Found) own(r *evidence.Record) {
	owner := f.Owners[r.Chain.UID]
	if r.Policy != nil {
		owner.Policy = r.Policy.Name
	}
	if r.Delivery != nil {
		owner.Releases = cmp.Or(r.Delivery.Environment, NoEnvironment)
	}
	f.Owners[r.Chain.UID] = owner
}

// NameChain names the object of a chain; its uid alone where no good record tells.
func (f *Found) NameChain(uid string) string {
	switch owner := f.Owners[uid]; {
	case owner.Policy != "":
		return owner.Policy + " (" + uid + ")"
	case owner.Releases == NoEnvironment:
		return "releases of no Environment (" + uid + ")"
	case owner.Releases != "":
		return "releases of " + owner.Releases + " (" + uid + ")"
	}
	return uid
}

// Chains returns the chains with the facts about their ends.
func (f *Found) Chains() []wording.Chain {
	chains := make([]wording.Chain, 0, len(f.Report.Chains))
	for _, report := range f.Report.Chains {
		points := f.known.Anchors[report.UID]
		c := wording.Chain{ChainReport: report, Checkpoints: len(points)}
		if head, is := f.known.Heads[report.UID]; is {
			c.Head = &head
		}
		if len(points) > 0 {
			c.Anchor = &points[len(points)-1]
		}
		chains = append(chains, c)
	}
	return chains
}

// WithdrawnBy returns the sequence of the record that withdraws a record, or 0.
func (f *Found) WithdrawnBy(r *evidence.Record) int64 {
	for i := range f.Report.Chains {
		if f.Report.Chains[i].UID != r.Chain.UID {
			continue
		}
		for _, w := range f.Report.Chains[i].Withdrawn {
			if w.Sequence == r.Chain.Sequence {
				return w.By
			}
		}
	}
	return 0
}

// OfPlan selects the records of plans with a name.
func OfPlan(namespace, name string) func(*evidence.Record) bool {
	return func(r *evidence.Record) bool {
		return r.Plan != nil && r.Plan.Namespace == namespace && r.Plan.Name == name
	}
}

// OfRelease selects the records of releases with a name, and of one run if run is above 0. Records about lost lines
// of the history belong to no run.
func OfRelease(namespace, name string, run int64) func(*evidence.Record) bool {
	return func(r *evidence.Record) bool {
		d := r.Delivery
		if d == nil || d.Release == nil || d.Release.Namespace != namespace || d.Release.Name != name {
			return false
		}
		return run == 0 || run == d.RunNumber()
	}
}
