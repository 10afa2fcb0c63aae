// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/internal/cli/documents"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/plural"
)

type lintOptions struct{ filename, requestsPerMinute, errorRate string }

func (a *app) lintCommand() *cobra.Command {
	var o lintOptions
	cmd := &cobra.Command{
		Use:   "lint -f FILE",
		Short: "Check manifests of releases and strategies against the cluster",
		Long: `Check manifests of ABReleases and RolloutStrategies: a dry run of the write, the Service,
the workloads and their ready pods, the pods that the Service selects, the pods of a
clone, other releases with the same canary, the binding of the executor, and the stages.
The command stores no object, and shows the least time that a run takes. It names the
parts that you may not read, and does not check them.

The forecast shows when each stage finds a canary with ten or three times the errors of
the active variation, and how long a healthy canary takes. The load is the measured one
in the status of the release. Without it, give --requests-per-minute and
--error-rate. The times are near the median; proxies with very different loads, and errors
that come in bursts, make them longer.

The exit code is 0 without a finding, 1 with findings, and 2 on an error, or when a part
could not be checked.`,
		Example: invocation.Examples(
			"# Check a manifest before it is applied", "%s release lint -f release.yaml",
			"# Check the output of a tool", "kustomize build . | %s release lint -f -",
			"# Foresee a run of a Service that is not measured yet", "%s release lint -f release.yaml --requests-per-minute 3000 --error-rate 0.3"),
		Annotations: map[string]string{invocation.TroubleAnnotation: "release lint"},
		Args:        invocation.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.filename == "" {
				return invocation.UsageErrorf(cmd, "name a file with -f, or - for standard input")
			}
			load, err := progress.ParseLoad(o.requestsPerMinute, o.errorRate)
			if err != nil {
				return invocation.UsageErrorf(cmd, "%v", err)
			}
			return a.lint(cmd.Context(), o.filename, load)
		},
	}
	cmd.Flags().StringVar(&o.requestsPerMinute, "requests-per-minute", "", "Requests a minute of the Service that the forecast assumes; left out, those of the status of the release.")
	cmd.Flags().StringVar(&o.errorRate, "error-rate", "", "Errors of the active variation in percent that the forecast assumes, such as 0.3; goes with --requests-per-minute.")
	cmd.Flags().StringVarP(&o.filename, "filename", "f", "", "File with JSON or YAML documents, or - for standard input; required.")
	invocation.MustMarkFilename(cmd, "filename", "json", "yaml", "yml")
	return cmd
}

func (a *app) lint(ctx context.Context, filename string, given *progress.Load) error {
	source, data, err := documents.ReadInput(filename, a.In)
	if err != nil {
		return err
	}
	docs, err := documents.Parse(source, data)
	if err != nil {
		return err
	}
	m, err := readManifests(docs)
	if err != nil {
		return err
	}
	c, err := a.Connect()
	if err != nil {
		return err
	}
	var d invocation.Description
	findings, unread := 0, 0
	for i := range m.strategies {
		s := &m.strategies[i]
		refusal, err := dryRun(ctx, c, s, &v1alpha1.RolloutStrategy{})
		if err != nil {
			return err
		}
		found := progress.LintStrategy(&s.Spec)
		if refusal != "" {
			found = append(found, progress.Finding{Problem: refusal, Fix: "correct the manifest"})
		}
		findings += len(found)
		describeFindings(&d, "RolloutStrategy "+s.Name, found, nil, &s.Spec)
		if f := progress.ForecastOf(&s.Spec, given, v1alpha1.ControlStable); f != nil {
			describeForecast(&d, f)
		}
	}
	for i := range m.releases {
		r := &m.releases[i]
		r.Namespace = cmp.Or(r.Namespace, c.Namespace)
		facts, err := readFacts(ctx, c, r, m)
		if err != nil {
			return err
		}
		found, missing := progress.LintRelease(r, facts)
		findings, unread = findings+len(found), unread+len(missing)
		spec := facts.Strategy
		if in := r.Spec.Rollout; in != nil && in.Strategy != nil {
			spec = in.Strategy
		}
		describeFindings(&d, "ABRelease "+releaseName(r), found, missing, spec)
		describeRun(&d, r, facts, spec, given)
	}
	if err := a.Print(d.String()); err != nil {
		return err
	}
	switch {
	case findings > 0:
		return &invocation.ExitError{Code: invocation.ExitDifferent}
	case unread > 0:
		return &invocation.ExitError{Code: invocation.ExitTrouble, Err: fmt.Errorf("%s could not be checked", plural.Of(unread, "object"))}
	}
	return nil
}

// describeRun writes the forecast of a run, and the hints that are no findings.
func describeRun(d *invocation.Description, r *v1alpha1.ABRelease, facts *progress.ManifestFacts, spec *v1alpha1.RolloutStrategySpec, load *progress.Load) {
	for _, hint := range progress.Hints(r, facts) {
		d.Line(1, "! %s: %s  → %s", hint.Field, hint.Problem, hint.Fix)
	}
	if load == nil {
		load = progress.LoadOf(&facts.Current)
	}
	control := v1alpha1.ControlStable
	if r.Spec.HasFreshControl() {
		control = v1alpha1.ControlFresh
	}
	switch f := progress.ForecastOf(spec, load, control); {
	case r.Spec.Rollout == nil || spec == nil:
	case !r.Spec.HasRequests():
		d.Line(1, "no forecast: readiness and restarts decide about groups, and each stage takes its duration")
	case f != nil:
		describeForecast(d, f)
	case load == nil:
		d.Line(1, "no forecast: the status of the release has no requests; give --requests-per-minute and --error-rate")
	}
}

func describeFindings(d *invocation.Description, name string, found []progress.Finding, unread []string, spec *v1alpha1.RolloutStrategySpec) {
	text := name + ": " + plural.Of(len(found), "finding")
	if spec != nil {
		text += fmt.Sprintf("; a run takes at least %s", progress.FormatClock(progress.LeastDuration(spec)))
	}
	d.Line(0, "%s", text)
	for _, f := range found {
		field := "the document"
		if f.Field != "" {
			field = f.Field
		}
		d.Line(1, "✗ %s: %s  → %s", field, f.Problem, f.Fix)
	}
	for _, u := range unread {
		d.Line(1, "? not checked: %s", u)
	}
}

// manifests are the documents of an input, by kind.
type manifests struct {
	releases   []v1alpha1.ABRelease
	strategies []v1alpha1.RolloutStrategy
}

// readManifests reads the documents strictly. A document of another kind is passed over; an input of no
// release and no strategy is an error.
func readManifests(docs []documents.Document) (*manifests, error) {
	m := &manifests{}
	for i := range docs {
		doc := &docs[i]
		var head struct{ APIVersion, Kind string }
		if err := json.Unmarshal(doc.Body, &head); err != nil {
			return nil, fault(doc, err)
		}
		if head.APIVersion != v1alpha1.GroupVersion.String() {
			continue
		}
		switch head.Kind {
		case "ABRelease":
			var r v1alpha1.ABRelease
			if err := decodeStrictly(doc, &r); err != nil {
				return nil, err
			}
			m.releases = append(m.releases, r)
		case "RolloutStrategy":
			var s v1alpha1.RolloutStrategy
			if err := decodeStrictly(doc, &s); err != nil {
				return nil, err
			}
			m.strategies = append(m.strategies, s)
		}
	}
	if len(m.releases)+len(m.strategies) == 0 {
		return nil, errors.New("the input holds no ABRelease and no RolloutStrategy")
	}
	return m, nil
}

func decodeStrictly(doc *documents.Document, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(doc.Body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fault(doc, err)
	}
	return nil
}

func fault(doc *documents.Document, err error) error {
	return &documents.InputError{Source: doc.Source, Offset: doc.Start, Problem: err.Error()}
}

// dryRun asks the API server whether it would take an object. The text is its refusal.
func dryRun(ctx context.Context, c *invocation.Cluster, object, current client.Object) (refusal string, err error) {
	tried, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return "", fmt.Errorf("copying %s: it is no object", object.GetName())
	}
	err = c.Get(ctx, client.ObjectKeyFromObject(object), current)
	switch {
	case apierrors.IsNotFound(err):
		err = c.Create(ctx, tried, client.DryRunAll)
	case err == nil:
		tried.SetResourceVersion(current.GetResourceVersion())
		err = c.Update(ctx, tried, client.DryRunAll)
	}
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) {
		return err.Error(), nil
	}
	return "", err
}

func readFacts(ctx context.Context, c *invocation.Cluster, r *v1alpha1.ABRelease, m *manifests) (*progress.ManifestFacts, error) {
	f := &progress.ManifestFacts{Workloads: map[v1alpha1.VariationName]progress.WorkloadFacts{}, Groups: map[v1alpha1.VariationName]progress.WorkloadFacts{}}
	var err error
	if f.Refusal, err = dryRun(ctx, c, r, &f.Current); err != nil {
		return nil, err
	}
	if r.Spec.HasRequests() {
		readService(ctx, c, r, f)
	}
	for i := range r.Spec.Variations {
		v := &r.Spec.Variations[i]
		if v.Workload != nil {
			f.Workloads[v.Name] = readWorkload(ctx, c, r.Namespace, v.Workload)
		}
		if v.Group != nil {
			f.Groups[v.Name] = readWorkload(ctx, c, r.Namespace, &v1alpha1.VariationWorkload{Kind: v1alpha1.VariationDeployment, Name: v.Group.Name})
		}
	}
	if r.Spec.Rollout != nil {
		f.Releases, f.ReleasesUnread = readReleases(ctx, c, r.Namespace)
	}
	if progress.NeedsExecutor(r) {
		f.Executor = readBinding(ctx, c, r.Namespace)
	}
	if in := r.Spec.Rollout; in != nil && in.StrategyName != "" {
		f.Strategy, f.StrategyUnread = readStrategy(ctx, c, in.StrategyName)
		for i := range m.strategies { // one of the same input counts as applied
			if m.strategies[i].Name == in.StrategyName {
				f.Strategy, f.StrategyUnread = &m.strategies[i].Spec, ""
			}
		}
	}
	return f, nil
}

// readService reads the Service whose requests the release divides.
func readService(ctx context.Context, c *invocation.Cluster, r *v1alpha1.ABRelease, f *progress.ManifestFacts) {
	service := &corev1.Service{}
	f.ServiceExists, f.ServiceUnread = exists(c.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Spec.ServiceName}, service))
	f.ServiceSelector = service.Spec.Selector
	if f.ServiceExists {
		f.Service = service
	}
}

// readReleases reads the releases of a namespace, since another one may roll out to the same canary.
func readReleases(ctx context.Context, c *invocation.Cluster, namespace string) (all []v1alpha1.ABRelease, unread string) {
	var list v1alpha1.ABReleaseList
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, err.Error()
	}
	return list.Items, ""
}

// readBinding finds a binding that lets the executor write in a namespace.
func readBinding(ctx context.Context, c *invocation.Cluster, namespace string) progress.Binding {
	var bindings rbacv1.RoleBindingList
	if err := c.List(ctx, &bindings, client.InNamespace(namespace)); err != nil {
		return progress.Binding{Unread: err.Error()}
	}
	if slices.ContainsFunc(bindings.Items, func(b rbacv1.RoleBinding) bool { return b.RoleRef.Name == progress.ExecutorTargets }) {
		return progress.Binding{Exists: true}
	}
	var everywhere rbacv1.ClusterRoleBindingList
	if err := c.List(ctx, &everywhere); err != nil {
		return progress.Binding{Unread: err.Error()}
	}
	return progress.Binding{Exists: slices.ContainsFunc(everywhere.Items, func(b rbacv1.ClusterRoleBinding) bool { return b.RoleRef.Name == progress.ExecutorTargets })}
}

// exists reads the answer to a request for an object.
func exists(err error) (is bool, unread string) {
	switch {
	case apierrors.IsNotFound(err):
		return false, ""
	case err != nil:
		return false, err.Error()
	}
	return true, ""
}

func readWorkload(ctx context.Context, c *invocation.Cluster, namespace string, of *v1alpha1.VariationWorkload) progress.WorkloadFacts {
	group := "apps"
	if of.Kind == v1alpha1.VariationJob {
		group = "batch"
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: string(of.Kind)})
	var w progress.WorkloadFacts
	if w.Exists, w.Unread = exists(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: of.Name}, object)); !w.Exists {
		return w
	}
	w.Object = object
	w.PodLabels, _, _ = unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
	for _, field := range []string{"readyReplicas", "numberReady", "ready"} {
		if n, has, err := unstructured.NestedInt64(object.Object, "status", field); has && err == nil {
			w.Ready = int32(min(max(n, 0), 1<<30)) //nolint:gosec // bounded
		}
	}
	return w
}
