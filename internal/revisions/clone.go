// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// Pair is a clone, and the variation that it is made from.
type Pair struct {
	Baseline, Canary rollout.Arm
	Clone            rollout.Clone
	// Follows says that the clone has the pod template that it is to have.
	Follows bool
	// Problem says why the clone cannot be made; empty if it can be. The Canary is not known then.
	Problem string
	// Kept is the pair of the change that the clone was made from; nil if that is not asked or not known.
	Kept *Pair
}

// Visit is one look at a clone.
type Visit struct {
	Release   *v1alpha1.ABRelease
	Variation *v1alpha1.Variation
	// Baseline is the workload that the clone is made from.
	Baseline traffic.Workload
	// BaselineLabels and CloneLabels are the revision labels that their pods have.
	BaselineLabels, CloneLabels []string
	// Selector is that of the Service; nil if the Service selects nothing.
	Selector map[string]string
	// Live has the workloads be read now, as while a run is on.
	Live bool
	// Keeps asks for the change that the clone was made from as well.
	Keeps bool
}

// CloneReader reads clones. What is read is remembered as long as neither the spec of the release nor the
// revision labels of the pods change.
type CloneReader struct {
	// Live reads from the API server, and not from a cache.
	Live client.Reader

	kept memory
}

// ReadClone returns both variations. The Canary has the revision that the clone is to have: the pod template
// of the baseline with the change of the clone. Pods of another template are not Updated. An Arm is zero if
// the baseline is not there.
func (r *CloneReader) ReadClone(ctx context.Context, v *Visit) (Pair, error) {
	if pair, is := r.kept.find(v); is && !v.Live {
		return pair, nil
	}
	pair, err := r.read(ctx, v)
	if err != nil {
		return Pair{}, err
	}
	r.kept.note(v, pair)
	return pair, nil
}

// Forget drops the memory of a release that is gone.
func (r *CloneReader) Forget(release types.NamespacedName) { r.kept.forget(release) }

func (r *CloneReader) read(ctx context.Context, v *Visit) (Pair, error) {
	baseline, err := r.deployment(ctx, v.Baseline.Namespace, v.Baseline.Name)
	if err != nil || baseline == nil {
		return Pair{Clone: describeClone(v)}, err
	}
	live, err := r.deployment(ctx, v.Release.Namespace, v1alpha1.CloneName(v.Release.Name, v.Variation.Name))
	if err != nil {
		return Pair{}, err
	}
	pair, err := pairOf(v, baseline, live)
	if err != nil || !v.Keeps {
		return pair, err
	}
	kept := clone.Keep(v.Release, v.Variation.Name, live)
	if kept == nil {
		return pair, nil
	}
	before := *v
	before.Release, before.Variation = kept, rollout.CloneOf(kept)
	of, err := pairOf(&before, baseline, live)
	if err != nil {
		return Pair{}, err
	}
	if of.Problem == "" {
		pair.Kept = &of
	}
	return pair, nil
}

// describeClone describes the clone of a variation as the release asks for it.
func describeClone(v *Visit) rollout.Clone {
	return rollout.Clone{
		Variation: string(v.Variation.Name), Deployment: v1alpha1.CloneName(v.Release.Name, v.Variation.Name), Baseline: v.Baseline.Name,
		MinReplicas: minReplicas(v.Variation.Clone), Hash: hashOf(changeOf(v.Variation.Clone)), Change: describe(v.Variation.Clone),
	}
}

// pairOf holds the clone that there is against what the executor would write. live is nil without a clone.
func pairOf(v *Visit, baseline, live *unstructured.Unstructured) (Pair, error) {
	pair := Pair{Clone: describeClone(v)}
	var err error
	if pair.Baseline, err = armOf(baseline); err != nil {
		return pair, err
	}
	labelRevision(&pair.Baseline, v.BaselineLabels)
	body, err := clone.BodyOf(v.Release, v.Variation.Name, baseline, v.Selector, 0)
	if err != nil {
		pair.Problem = err.Error()
		return pair, nil //nolint:nilerr // the status says it
	}
	changed, err := clone.Change(v.Release, v.Variation.Name, baseline)
	if err != nil {
		pair.Problem = err.Error()
		return pair, nil //nolint:nilerr // the status says it
	}
	return pair, pair.compare(v, live, body, changed)
}

// compare holds the clone that there is against its body, and the baseline against the changed one.
func (p *Pair) compare(v *Visit, live, body, changed *unstructured.Unstructured) error {
	after, err := armOf(changed)
	if err != nil {
		return err
	}
	p.Clone.Changed = p.Baseline.Revision.Hash == after.Revision.Hash
	wanted, err := armOf(body)
	if err != nil {
		return err
	}
	if label := p.Baseline.Revision.Label; label != "" { // so a new version of Kubernetes makes no revision
		wanted.Revision.Label = label + "." + hashOf(v.Variation.Clone)[:8]
	}
	p.Canary = rollout.Arm{Revision: wanted.Revision, Labels: wanted.Labels}
	if live == nil {
		return nil
	}
	is, err := armOf(live)
	if err != nil {
		return err
	}
	p.Canary.Targets, p.Canary.Replicas = is.Targets, is.Replicas
	p.Follows = is.Revision.Hash == wanted.Revision.Hash
	if p.Clone.Altered = !p.Follows; p.Follows {
		p.Canary.Updated = is.Updated
	}
	return nil
}

// deployment is nil if it is not there.
func (r *CloneReader) deployment(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Deployment %s/%s: %w", namespace, name, err)
	}
	return object, nil
}

func minReplicas(c *v1alpha1.VariationClone) int {
	if c.MinReplicas == nil {
		return 1
	}
	return int(*c.MinReplicas)
}

// changeOf is what of a clone reaches the baseline.
func changeOf(c *v1alpha1.VariationClone) *v1alpha1.VariationClone {
	return &v1alpha1.VariationClone{Image: c.Image, Env: c.Env, Containers: c.Containers}
}

// hashOf a clone's spec but for its size.
func hashOf(c *v1alpha1.VariationClone) string {
	sum := sha256.Sum256(clone.Encode(c))
	return hex.EncodeToString(sum[:8])
}

// describe a change for the person who has to make it in another place: images, and names of variables.
func describe(c *v1alpha1.VariationClone) string {
	var parts []string
	add := func(container string, image v1alpha1.ImageReference, env []v1alpha1.CloneVariable) {
		if image != "" {
			parts = append(parts, "image "+string(image)+container)
		}
		if len(env) > 0 {
			var names []string
			for i := range env {
				names = append(names, env[i].Name)
			}
			parts = append(parts, "env "+strings.Join(names, ", ")+container)
		}
	}
	add("", c.Image, c.Env)
	for i := range c.Containers {
		add(" of container "+string(c.Containers[i].Name), c.Containers[i].Image, c.Containers[i].Env)
	}
	return strings.Join(parts, "; ")
}

// isSettled tells whether nothing of a pair changes without another revision label of a pod.
func (p *Pair) isSettled() bool {
	return p.Baseline.Revision.Hash != "" && p.Baseline.Updated == p.Baseline.Targets && p.Canary.Updated == p.Canary.Targets
}

// matches tells whether a pair that was read for one look is that of another one.
func (v *Visit) matches(other *Visit) bool {
	return v.Release.UID == other.Release.UID && v.Release.Generation == other.Release.Generation && v.Baseline == other.Baseline &&
		len(v.BaselineLabels) <= 1 && slices.Equal(v.BaselineLabels, other.BaselineLabels) &&
		maps.Equal(v.Selector, other.Selector) && len(v.CloneLabels) <= 1 && slices.Equal(v.CloneLabels, other.CloneLabels)
}
