// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// Runs looks at what runs of releases left: the workload of the active variation.
type Runs struct {
	Live Getter
	// Cached has ABReleases.
	Cached client.Reader
}

var (
	errReleaseReplaced = errors.New("another release has its name")
	errNothingServes   = errors.New("the release names no workload that serves")
	errNotSeen         = errors.New("it is not known which object served when the run ended")
)

// look implements looker. The live hash is that of the pod template that serves the release now: if another run
// was promoted, that of another workload.
func (r *Runs) look(ctx context.Context, a *v1alpha1.EffectivenessAssessment) Sight {
	of, release := a.Spec.Subject.Release, &v1alpha1.ABRelease{}
	if err := r.Cached.Get(ctx, types.NamespacedName{Namespace: a.Namespace, Name: of.Name}, release); err != nil {
		return unread(fmt.Errorf("reading the release: %w", err))
	}
	if string(release.UID) != of.UID {
		return unread(fmt.Errorf("reading the release: %w", errReleaseReplaced))
	}
	s := r.see(ctx, release)
	if a.Spec.Target.UID == "" && !s.Gone { // there is nothing to compare it with, and its pods can be measured
		s.Read, s.Why = false, cmp.Or(s.Why, errNotSeen.Error())
	}
	return s
}

// see reads the workload that serves a release.
func (r *Runs) see(ctx context.Context, release *v1alpha1.ABRelease) Sight {
	serving := activeVariation(release)
	workload := clone.WorkloadOf(release, serving)
	if workload == nil {
		return unread(errNothingServes)
	}
	target := targetOf(workload)
	s := seeObject(ctx, r.Live, exec.Reference{GVK: canon.ParseGVK(target.APIVersion, target.Kind), Namespace: release.Namespace, Name: target.Name})
	if s.Object == nil {
		return s
	}
	hash, err := r.hash(ctx, release, serving, s.Raw)
	if err != nil {
		s.Why = err.Error()
		return s
	}
	s.Read, s.Hash = true, hash
	return s
}

// hash returns the revision of a workload; with a group beside the workload, that of both.
func (r *Runs) hash(ctx context.Context, release *v1alpha1.ABRelease, serving v1alpha1.VariationName, raw []byte) (string, error) {
	hash, err := templateHash(raw)
	if err != nil {
		return "", err
	}
	group := groupBeside(release, serving)
	if group == nil {
		return hash, nil
	}
	beside := seeObject(ctx, r.Live, exec.Reference{GVK: canon.ParseGVK("apps/v1", string(group.Kind)), Namespace: release.Namespace, Name: group.Name})
	if beside.Object == nil {
		return "", fmt.Errorf("reading the group %s: %w", group.Name, errNothingServes)
	}
	of, err := templateHash(beside.Raw)
	if err != nil {
		return "", err
	}
	joined := rollout.JoinArms(rollout.Arm{Revision: rollout.Revision{Hash: hash}}, rollout.Arm{Revision: rollout.Revision{Hash: of}})
	return joined.Revision.Hash, nil
}

// groupBeside returns the group that a variation has beside its workload; nil if it has none.
func groupBeside(release *v1alpha1.ABRelease, name v1alpha1.VariationName) *v1alpha1.VariationGroup {
	for i := range release.Spec.Variations {
		if v := &release.Spec.Variations[i]; v.Name == name && v.Workload != nil {
			return v.Group
		}
	}
	return nil
}

func templateHash(raw []byte) (string, error) {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &object.Object); err != nil {
		return "", fmt.Errorf("decoding the target: %w", err)
	}
	return clone.TemplateHash(object)
}
