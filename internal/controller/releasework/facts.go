// SPDX-License-Identifier: Apache-2.0

package releasework

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/environment"
	"github.com/plumbline-dev/plumbline/internal/gitops"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/protocol"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/traffic/clone"
	"github.com/plumbline-dev/plumbline/pkg/traffic/work"
)

// deployment is the kind of all targets but autoscalers.
var deployment = canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}

// read reads all that the decision depends on; nil when the work is gone. What cannot be read is
// told in the facts.
func (r *Reconciler) read(ctx context.Context, key types.NamespacedName) (*work.Facts, error) {
	w, err := r.readWork(ctx, key)
	if err != nil || w == nil {
		return nil, err
	}
	facts := &work.Facts{Work: w, Now: r.Time.Now()}
	if work.Final(w.Status.Phase) {
		return facts, nil
	}
	facts.Recorded, facts.Unrecorded = r.Records.Recorded(w)
	if err := r.fill(ctx, facts); err != nil {
		r.Log.Error(err, "reading the dependencies of a ReleaseWork", "namespace", w.Namespace, "work", w.Name)
		facts.Unread = err.Error()
	}
	return facts, nil
}

// fill reads in the order in which one read depends on another.
func (r *Reconciler) fill(ctx context.Context, f *work.Facts) (err error) {
	if f.Release, err = r.readRelease(ctx, f.Work); err != nil || f.Release == nil {
		return err
	}
	if string(f.Release.UID) != f.Work.Spec.ReleaseUID {
		return nil // the rest is about another release
	}
	f.Release = clone.WithControl(f.Release, f.Work.Spec.Variation)
	if f.Executor, err = r.executorMay(ctx, f); err != nil || f.Executor.Right != work.RightGiven {
		return err
	}
	works, err := r.fillWorks(ctx, f)
	if err != nil {
		return err
	}
	fillTargets := r.fillTargets
	switch {
	case work.Holds(&f.Work.Spec):
		fillTargets = r.fillAutoscalers
	case work.ScalesGroup(f.Work, f.Release):
		fillTargets = r.fillGroups
	}
	if err := fillTargets(ctx, f); err != nil {
		return err
	}
	f.Release = work.Keep(f.Release, f.Work.Spec.Variation, f.Clone, works)
	if f.Halted, err = r.readHalt(ctx, f.Work.Namespace); err != nil {
		return err
	}
	if !work.Holds(&f.Work.Spec) { // plans are asked about Deployments
		if err := r.fillPlan(ctx, f); err != nil {
			return err
		}
	}
	if err := r.fillGuards(ctx, f); err != nil {
		return err
	}
	f.Requester, err = r.requesterMay(ctx, f)
	return err
}

// fillTargets reads the Deployments, and the selector of the Service.
func (r *Reconciler) fillTargets(ctx context.Context, f *work.Facts) (err error) {
	namespace := f.Work.Namespace
	if f.Clone, err = r.readDeployment(ctx, namespace, v1alpha1.CloneName(f.Release.Name, f.Work.Spec.Variation)); err != nil {
		return err
	}
	if name := work.BaselineName(f.Release); name != "" {
		if f.Baseline, err = r.readDeployment(ctx, namespace, name); err != nil {
			return err
		}
	}
	if f.Baseline != nil {
		f.Tool = toolOf(f.Baseline)
	}
	service := &corev1.Service{}
	err = r.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: f.Release.Spec.ServiceName}, service)
	f.ServiceMissing = apierrors.IsNotFound(err)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Service %s/%s: %w", namespace, f.Release.Spec.ServiceName, err)
	}
	f.Service = service.Spec.Selector
	return nil
}

// toolOf names the tool of GitOps that applies an object; empty if none does.
func toolOf(object *unstructured.Unstructured) string {
	return gitops.Marked(object.GetLabels(), object.GetAnnotations())
}

func (r *Reconciler) readRelease(ctx context.Context, w *v1alpha1.ReleaseWork) (*v1alpha1.ABRelease, error) {
	release := &v1alpha1.ABRelease{}
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: w.Spec.ReleaseName}, release)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absent is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("reading ABRelease %s/%s: %w", w.Namespace, w.Spec.ReleaseName, err)
	}
	return release, nil
}

// readDeployment reads a Deployment past every cache; nil when it is not there.
func (r *Reconciler) readDeployment(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	return r.readTarget(ctx, exec.Reference{GVK: deployment, Namespace: namespace, Name: name})
}

// readTarget reads an object past every cache; nil when it is not there.
func (r *Reconciler) readTarget(ctx context.Context, of exec.Reference) (*unstructured.Unstructured, error) {
	raw, err := r.Targets.Get(ctx, of)
	if exec.ResultOf(err) == protocol.Gone {
		return nil, nil //nolint:nilnil // absent is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", of.Kind, of.Namespace, of.Name, err)
	}
	return decode(raw)
}

func decode(raw []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("decoding an object: %w", err)
	}
	return object, nil
}

// readHalt tells who halted the ledger of the cluster, or of the Environment that the namespace
// belongs to; empty if none is halted.
func (r *Reconciler) readHalt(ctx context.Context, namespace string) (string, error) {
	names := []string{exec.ClusterLedger}
	own, err := r.environmentOf(ctx, namespace)
	if err != nil {
		return "", err
	}
	if own != "" {
		names = append(names, own)
	}
	for _, name := range names {
		ledger := &v1alpha1.RemediationLedger{}
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: r.Namespace, Name: name}, ledger)
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("reading ledger %s: %w", name, err)
		}
		if halt := ledger.Spec.Halt; halt != nil {
			return fmt.Sprintf("%s has halted the RemediationLedger %s: %s", halt.RequestedBy, name, halt.Reason), nil
		}
	}
	return "", nil
}

// environmentOf names the Environment that a namespace belongs to; empty if it belongs to none.
func (r *Reconciler) environmentOf(ctx context.Context, namespace string) (string, error) {
	live := &corev1.Namespace{}
	if err := r.Live.Get(ctx, types.NamespacedName{Name: namespace}, live); err != nil {
		return "", fmt.Errorf("reading Namespace %s: %w", namespace, err)
	}
	var environments v1alpha1.EnvironmentList
	if err := r.Live.List(ctx, &environments); err != nil {
		return "", fmt.Errorf("listing Environments: %w", err)
	}
	var all []*v1alpha1.Environment
	for i := range environments.Items {
		all = append(all, &environments.Items[i])
	}
	if own := environment.Assign(all, map[string]labels.Set{namespace: live.Labels}).Of(namespace); own != nil {
		return own.Name, nil
	}
	return "", nil
}

// fillWorks names a work of the same release that comes before this one and has not ended, and finds what the
// works before hold, or have read of groups. It returns the works of the namespace.
func (r *Reconciler) fillWorks(ctx context.Context, f *work.Facts) ([]v1alpha1.ReleaseWork, error) {
	w := f.Work
	var works v1alpha1.ReleaseWorkList
	if err := r.Live.List(ctx, &works, client.InNamespace(w.Namespace)); err != nil {
		return nil, fmt.Errorf("listing ReleaseWorks: %w", err)
	}
	at := slices.IndexFunc(works.Items, func(other v1alpha1.ReleaseWork) bool {
		return other.Spec.ReleaseUID == w.Spec.ReleaseUID && work.IsBefore(&other, w) && !work.Final(other.Status.Phase)
	})
	if at >= 0 {
		f.Earlier = works.Items[at].Name
	}
	f.Holding = work.HoldingOf(w, works.Items)
	if work.ScalesGroup(w, f.Release) {
		f.Groups = &work.Groups{Replicas: work.GroupReplicasOf(w, works.Items)}
	}
	return works.Items, nil
}
