// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// maxKept bounds how many names of bodies a process remembers; afterwards it asks the store
// again.
const maxKept = 4096

// keptBodies remembers the bodies that this process has stored or found, so that each is sent
// once.
type keptBodies struct {
	mu    sync.Mutex
	names map[string]bool
}

func (k *keptBodies) has(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.names[name]
}

func (k *keptBodies) add(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.names == nil || len(k.names) >= maxKept {
		k.names = map[string]bool{}
	}
	k.names[name] = true
}

// Keep stores a body beside a chain and returns its digest. A body that the store has is not
// sent again.
func (r *Recorder) Keep(ctx context.Context, chain string, body []byte) (string, error) {
	digest := evidence.Digest(body)
	if stored, err := r.Has(ctx, chain, digest); stored || err != nil {
		return digest, err
	}
	if _, err := r.Writer.Keep(ctx, chain, body); err != nil {
		return "", err
	}
	r.kept.add(evidence.BodyName(chain, digest))
	return digest, nil
}

// Has says whether the body with a digest stands beside a chain.
func (r *Recorder) Has(ctx context.Context, chain, digest string) (bool, error) {
	name := evidence.BodyName(chain, digest)
	if r.kept.has(name) {
		return true, nil
	}
	_, err := evidence.ReadBody(ctx, r.Writer.Store, chain, digest)
	switch {
	case errors.Is(err, evidence.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("looking for a body: %w", err)
	}
	r.kept.add(name)
	return true, nil
}

// keepOrigins stores what the plan follows from, its policy and the plan itself, and returns
// the bodies that a record may name. A policy that has changed since the plan was made can
// only be named if it was stored before.
func (r *run) keepOrigins(ctx context.Context) ([]evidence.Body, error) {
	plan := &r.plan.Spec.Plan
	chain := plan.Policy.UID
	var bodies []evidence.Body
	stored, err := r.keepPolicy(ctx)
	if err != nil {
		return nil, err
	}
	if stored {
		bodies = append(bodies, evidence.Body{Of: evidence.BodyPolicy, Digest: plan.Policy.Digest})
	}
	digest, err := r.Evidence.Keep(ctx, chain, encodePlan(plan))
	if err != nil {
		return nil, err
	}
	return append(bodies, evidence.Body{Of: evidence.BodyPlan, Digest: digest}), nil
}

// keepPolicy stores the policy as it was when the plan was made. Where it cannot be read, or
// has changed, the store may have it from before.
func (r *run) keepPolicy(ctx context.Context) (stored bool, err error) {
	want := r.plan.Spec.Plan.Policy
	if r.Evidence.kept.has(evidence.BodyName(want.UID, want.Digest)) {
		return true, nil
	}
	raw := r.policyAsPlanned(ctx)
	if raw == nil {
		return r.Evidence.Has(ctx, want.UID, want.Digest)
	}
	_, err = r.Evidence.Keep(ctx, want.UID, raw)
	return err == nil, err
}

// policyAsPlanned returns the JSON of the policy's spec; nil when it is not at hand as the plan
// names it. The first record of a plan is older than the first look at its policy.
func (r *run) policyAsPlanned(ctx context.Context) []byte {
	policy := r.policy
	if policy == nil {
		var err error
		if policy, err = r.readPolicy(ctx, r.Client); err != nil || policy == nil {
			return nil
		}
	}
	raw, err := json.Marshal(&policy.Spec)
	if err != nil || evidence.Digest(raw) != r.plan.Spec.Plan.Policy.Digest {
		return nil
	}
	return raw
}

// tell writes a record that names the bodies it speaks of, after these are stored.
func (r *run) tell(ctx context.Context, record evidence.Record) (evidence.Head, error) {
	bodies, err := r.keepOrigins(ctx)
	if err != nil {
		return evidence.Head{}, err
	}
	record.Bodies = append(bodies, record.Bodies...)
	return r.Evidence.Tell(ctx, r.plan.Spec.Plan.EnvironmentName, record)
}

// note writes a record as tell does. Its head is kept with the next write of the ledger, and
// before the next status is stored.
func (r *run) note(ctx context.Context, record evidence.Record) (evidence.Head, error) {
	bodies, err := r.keepOrigins(ctx)
	if err != nil {
		return evidence.Head{}, err
	}
	record.Bodies = append(bodies, record.Bodies...)
	at, err := r.Evidence.Note(ctx, r.plan.Spec.Plan.EnvironmentName, record)
	r.noted = r.noted || err == nil
	return at, err
}

// keepNoted keeps the head of what was noted.
func (r *run) keepNoted(ctx context.Context) error {
	if !r.noted {
		return nil
	}
	if err := r.Evidence.KeepHead(ctx, r.plan.Spec.Plan.EnvironmentName, r.plan.Spec.Plan.Policy.UID); err != nil {
		return err
	}
	r.noted = false
	return nil
}

// keepArtifacts stores what a step is about to write and what it writes over. The policy and
// the plan are stored with them, so that each write has both.
func (r *run) keepArtifacts(ctx context.Context, step int32) (v1alpha1.StepArtifacts, error) {
	var kept v1alpha1.StepArtifacts
	if _, err := r.keepOrigins(ctx); err != nil {
		return kept, err
	}
	m := r.material(step)
	for _, artifact := range []struct {
		object []byte
		digest *string
	}{{m.raw, &kept.Before}, {m.standard.Desired, &kept.Authorized}, {m.request, &kept.Written}} {
		if artifact.object == nil {
			continue
		}
		body, err := diff.RedactObject(artifact.object, m.standard.GVK)
		if err != nil {
			return kept, err
		}
		if *artifact.digest, err = r.Evidence.Keep(ctx, r.plan.Spec.Plan.Policy.UID, body); err != nil {
			return kept, err
		}
	}
	return kept, nil
}

// artifactsOf returns the bodies that the record of a step names besides policy and plan.
func artifactsOf(intent *v1alpha1.StepIntentRecord) []evidence.Body {
	var bodies []evidence.Body
	for _, body := range []evidence.Body{
		{Of: evidence.BodyBefore, Digest: intent.Artifacts.Before},
		{Of: evidence.BodyAuthorized, Digest: intent.Artifacts.Authorized},
		{Of: evidence.BodyWritten, Digest: intent.Artifacts.Written},
	} {
		if body.Digest != "" {
			bodies = append(bodies, body)
		}
	}
	return bodies
}
