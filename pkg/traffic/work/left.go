// SPDX-License-Identifier: Apache-2.0

package work

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
	"github.com/plumbline-dev/plumbline/pkg/traffic/rollout"
)

// Mark is the label of a write that an object carries, with what is stored about it.
type Mark struct {
	// UID of a ReleaseWork, as the label plumbline.dev/release-work says.
	UID types.UID
	// Target is the name of the Deployment that carries the label; empty if an autoscaler does, which has the UID
	// Autoscaler.
	Target, Autoscaler string
	// Works of the namespace, and the release that the work names.
	Works   []v1alpha1.ReleaseWork
	Release *v1alpha1.ABRelease
}

// Find returns the work that the label names, or nil if there is none in the namespace.
func (m *Mark) Find() *v1alpha1.ReleaseWork {
	at := slices.IndexFunc(m.Works, func(w v1alpha1.ReleaseWork) bool { return w.UID == m.UID })
	if at < 0 {
		return nil
	}
	return &m.Works[at]
}

// Last returns the work that the label names, if the label can be true: the work is about the
// object, it belongs to the present run of the release, and the executor was about to write. No
// later work of the run was about to write the same object. It returns nil otherwise: anyone who
// may change the labels of an object can give it the label of another work.
func (m *Mark) Last() *v1alpha1.ReleaseWork {
	w := m.Find()
	if w == nil || m.Release == nil || string(m.Release.UID) != w.Spec.ReleaseUID || m.Release.Name != w.Spec.ReleaseName {
		return nil
	}
	if r := m.Release.Status.Rollout; r == nil || r.Run == nil || r.Run.Number != w.Spec.Run {
		return nil
	}
	if !writes(w) || !m.isAbout(w) {
		return nil
	}
	for i := range m.Works {
		other := &m.Works[i]
		isLater := other.Spec.ReleaseUID == w.Spec.ReleaseUID && other.Spec.Run == w.Spec.Run && other.Spec.Number > w.Spec.Number
		if isLater && writes(other) && m.isAbout(other) {
			return nil
		}
	}
	return w
}

// isAbout tells whether a work is about the object that carries the label.
func (m *Mark) isAbout(w *v1alpha1.ReleaseWork) bool {
	if Holds(&w.Spec) {
		return m.Autoscaler != "" && w.Status.Intent != nil && w.Status.Intent.UID == m.Autoscaler
	}
	return m.Autoscaler == "" && TargetName(w, m.Release) == m.Target
}

// IsOn tells whether the run of the release has not ended.
func (m *Mark) IsOn() bool {
	return m.Release != nil && rollout.StateOf(&m.Release.Status).IsOn()
}

// writes tells whether the executor was about to write for a work, and did not refuse it then.
func writes(w *v1alpha1.ReleaseWork) bool {
	return w.Status.Intent != nil && w.Status.Phase != v1alpha1.WorkRefused
}

// HasStart tells whether a work starts from the body of the stable variation's Deployment, which is another object
// than its target.
func HasStart(w *v1alpha1.ReleaseWork, release *v1alpha1.ABRelease) bool {
	return w.Spec.Verb != v1alpha1.WorkUpdateBaseline && !ScalesGroup(w, release)
}

// StartsFrom tells whether a body of the stable variation's Deployment is the one that a work was
// decided on.
func StartsFrom(w *v1alpha1.ReleaseWork, body *unstructured.Unstructured) bool {
	hash, err := clone.TemplateHash(body)
	return err == nil && hash == w.Spec.ExpectedHash
}

// Keep returns the release with the change that the run was measured with, where the policy is Queue and the
// spec may ask for another one by now. It returns the release itself if the live clone is not known to be what a
// work of the run has written: the executor has computed that from the release, by the right of its author.
func Keep(release *v1alpha1.ABRelease, variation v1alpha1.VariationName, live *unstructured.Unstructured, works []v1alpha1.ReleaseWork) *v1alpha1.ABRelease {
	in, state := release.Spec.Rollout, release.Status.Rollout
	if in == nil || in.Supersede != v1alpha1.SupersedeQueue || state == nil || state.Run == nil || live == nil {
		return release
	}
	hash, err := clone.TemplateHash(live)
	isMade := slices.ContainsFunc(works, func(w v1alpha1.ReleaseWork) bool {
		return w.Spec.ReleaseUID == string(release.UID) && w.Spec.Run == state.Run.Number && w.Spec.Variation == variation &&
			w.Spec.Verb == v1alpha1.WorkCreateClone && w.Status.Phase == v1alpha1.WorkSucceeded && w.Status.TemplateHash == hash
	})
	if err != nil || hash != state.Run.To.Hash || !isMade {
		return release
	}
	if kept := clone.Keep(release, variation, live); kept != nil {
		return kept
	}
	return release
}

// Left returns what a work may leave in its target, best first. baseline is the authorized body of
// the stable variation's Deployment that the work starts from, and authorized that of the target
// itself; both may be nil. A release that gives no body leaves nothing.
func Left(w *v1alpha1.ReleaseWork, release *v1alpha1.ABRelease, baseline, authorized *unstructured.Unstructured) []*unstructured.Unstructured {
	var left []*unstructured.Unstructured
	add := func(body *unstructured.Unstructured, err error) {
		if err == nil && body != nil {
			left = append(left, body)
		}
	}
	switch w.Spec.Verb {
	case v1alpha1.WorkUpdateBaseline:
		if authorized != nil && asksForUpdate(release) {
			add(clone.Change(release, w.Spec.Variation, authorized))
		}
		return left
	case v1alpha1.WorkScale: // the pod template stays, which for a group is all of it, whatever has become of the baseline since
		if authorized != nil {
			add(withReplicas(authorized, w.Spec.Replicas))
		}
	case v1alpha1.WorkCreateClone:
	case v1alpha1.WorkHoldMinReplicas: // see LeftMinimum
		return nil
	default:
		return nil // a verb that this version does not know
	}
	if baseline != nil && w.Spec.Replicas != nil {
		// The selector of the Service decides whether there is a clone, and is no part of its body.
		add(clone.BodyOf(release, w.Spec.Variation, baseline, nil, *w.Spec.Replicas))
	}
	return left
}

func asksForUpdate(release *v1alpha1.ABRelease) bool {
	return release.Spec.Rollout != nil && release.Spec.Rollout.Promotion == v1alpha1.PromotionUpdateBaseline
}

func withReplicas(body *unstructured.Unstructured, replicas *int32) (*unstructured.Unstructured, error) {
	if replicas == nil {
		return nil, nil //nolint:nilnil // the work sets no number
	}
	out := body.DeepCopy()
	if err := unstructured.SetNestedField(out.Object, int64(*replicas), "spec", "replicas"); err != nil {
		return nil, fmt.Errorf("setting the replicas of Deployment %s: %w", body.GetName(), err)
	}
	return out, nil
}

// ReadBody reads the content of a Deployment, as an authorized state keeps it, which has no metadata.
func ReadBody(content []byte, namespace, name string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(content, &object.Object); err != nil {
		return nil, fmt.Errorf("decoding the authorized body of Deployment %s/%s: %w", namespace, name, err)
	}
	if object.Object == nil {
		object.Object = map[string]any{}
	}
	object.SetAPIVersion("apps/v1")
	object.SetKind(string(v1alpha1.VariationDeployment))
	object.SetNamespace(namespace)
	object.SetName(name)
	return object, nil
}

// WriteBody encodes the content of a Deployment without its metadata.
func WriteBody(object *unstructured.Unstructured) ([]byte, error) {
	content := map[string]any{}
	for key, value := range object.Object {
		if key != "metadata" && key != "status" {
			content[key] = value
		}
	}
	body, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encoding the body of Deployment %s: %w", object.GetName(), err)
	}
	return body, nil
}
