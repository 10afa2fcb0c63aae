// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// writeTimeout is a little more than the API server itself gives a write.
const writeTimeout = 40 * time.Second

// probes tries what only a write can show. Nothing is stored.
func (r *reader) probes(ctx context.Context) {
	s := r.snapshot
	plan, ok := doctor.PlanWrite(s, r.options.ProbeNamespace)
	if !ok {
		s.Probes.Write = doctor.Read[doctor.Written]{Reason: "no kind is registered that could be tried"}
	} else {
		s.Probes.Plan = plan
		s.Probes.Write = r.write(ctx, plan)
	}
	if plan, ok := doctor.PlanDeny(s); ok {
		s.Probes.DenyPlan = plan
		_, s.Probes.Deny = r.create(ctx, pathOf(plan), plan.Object())
	}
	namespace := s.Probes.Plan.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	path := fmt.Sprintf("/apis/%s/namespaces/%s/baselines", v1alpha1.GroupVersion, namespace)
	_, s.Probes.Baseline = r.create(ctx, path, foreignBaseline(namespace))
	s.Probes.Forgeries = r.forgeries(ctx, namespace)
}

func pathOf(p doctor.Plan) string {
	return fmt.Sprintf("/apis/%s/namespaces/%s/%s", p.Kind.GroupVersion(), p.Namespace, p.ResourceOf())
}

// foreignBaseline is one that nobody but the assessor may make.
func foreignBaseline(namespace string) map[string]any {
	return map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Baseline",
		"metadata": map[string]any{"namespace": namespace, "name": specguard.BaselineName("deployments", "apps", doctor.ProbeName)},
		"spec":     map[string]any{"target": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": doctor.ProbeName}},
	}
}

func (r *reader) write(ctx context.Context, plan doctor.Plan) doctor.Read[doctor.Written] {
	before := doctor.Reviews(r.snapshot.Pods)
	started := time.Now()
	body, outcome := r.create(ctx, pathOf(plan), plan.Object())
	read := doctor.Read[doctor.Written]{State: outcome.State, Reason: outcome.Reason, Right: outcome.Right}
	read.Value = doctor.Written{Outcome: outcome.Value, Took: time.Since(started), ReviewsBefore: before}
	if read.State != doctor.ReadValue || read.Value.Refused {
		return read
	}
	read.Value.ReviewsAfter = doctor.Reviews(r.rescrape(ctx))
	var answer metav1.PartialObjectMetadata
	if err := json.Unmarshal(body, &answer); err != nil {
		return doctor.Read[doctor.Written]{Reason: "decoding the answer: " + err.Error()}
	}
	read.Value.Writer = answer.Annotations[v1alpha1.AnnotationWriter]
	read.Value.Hash = answer.Annotations[v1alpha1.AnnotationSpecHash]
	want, err := canon.HashBody(body, canon.GVK(plan.Kind))
	if err != nil {
		return doctor.Read[doctor.Written]{Reason: "hashing the answer: " + err.Error()}
	}
	read.Value.WantHash = string(want)
	return read
}

// create posts an object as a dry run and gives the answer as the server wrote
// it: our own types would drop fields that they do not know, and the hash covers
// all of them.
func (r *reader) create(ctx context.Context, path string, object map[string]any) ([]byte, doctor.Read[doctor.Outcome]) {
	return r.try(ctx, r.raw.Post(), "application/json", path, object)
}

// mark patches the ledger that an Environment remembers, as a dry run.
func (r *reader) mark(ctx context.Context, path string) doctor.Read[doctor.Outcome] {
	_, outcome := r.try(ctx, r.raw.Patch(types.MergePatchType), string(types.MergePatchType), path, map[string]any{"status": map[string]any{"ledgerUID": doctor.ProbeName}})
	return outcome
}

func (r *reader) try(ctx context.Context, request *rest.Request, contentType, path string, object map[string]any) ([]byte, doctor.Read[doctor.Outcome]) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, doctor.Read[doctor.Outcome]{Reason: err.Error()}
	}
	result := request.AbsPath(path).Param("dryRun", metav1.DryRunAll).Param("fieldManager", doctor.ProbeName).
		SetHeader("Content-Type", contentType).SetHeader("Accept", "application/json").Body(raw).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, refusal(err, path)
	}
	body, err := result.Raw()
	if err != nil {
		return nil, doctor.Read[doctor.Outcome]{Reason: err.Error()}
	}
	return body, doctor.Got(doctor.Outcome{})
}

// refusal tells who said no: RBAC, which asks before admission and so leaves the
// question open, or something in admission.
func refusal(err error, path string) doctor.Read[doctor.Outcome] {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	switch {
	case !ok:
		return doctor.Read[doctor.Outcome]{Reason: err.Error()}
	case apierrors.IsNotFound(err) && !isAbsent(err): // the kind is gone
		return doctor.Gone[doctor.Outcome]()
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource"):
		return doctor.Read[doctor.Outcome]{Reason: err.Error(), Right: "create " + resourceIn(path)}
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot patch resource"):
		return doctor.Read[doctor.Outcome]{Reason: err.Error(), Right: "patch " + resourceIn(path)}
	case status.Status().Code >= http.StatusInternalServerError:
		return doctor.Read[doctor.Outcome]{Reason: err.Error()}
	}
	outcome := doctor.Outcome{Refused: true, Message: err.Error()}
	if _, rest, found := strings.Cut(err.Error(), "ValidatingAdmissionPolicy '"); found {
		outcome.By, _, _ = strings.Cut(rest, "'")
	}
	return doctor.Got(outcome)
}

// resourceIn words /apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE.
func resourceIn(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	const group, namespace, resource = 1, 4, 5
	if len(parts) <= resource {
		return path
	}
	return parts[resource] + "." + parts[group] + " in namespace " + parts[namespace]
}
