// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/actions/explanation"
	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// reader reads what one page needs.
type reader struct {
	context.Context
	Cluster
	log     *slog.Logger
	request *http.Request
	// values are those of the address, or of the form that was sent.
	values url.Values
	// tried says that the request of the form was tried, and stored no object.
	tried bool
	// unread says by kind why objects could not be read that the page can do without.
	unread view.Unread
}

func (r *reader) value(name string) string { return r.values.Get(name) }

// namespace is the one that the caller asks for; empty for all.
func (r *reader) namespace() (string, error) {
	namespace := r.value("namespace")
	if namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
		return "", wire.NewProblem(wire.BadRequest, "the query namespace is no name of a namespace")
	}
	return namespace, nil
}

// key is the object that the path names.
func (r *reader) key(kind string) (client.ObjectKey, error) {
	key := client.ObjectKey{Namespace: r.request.PathValue("namespace"), Name: r.request.PathValue("name")}
	isNamespace := key.Namespace == "" || len(validation.IsDNS1123Label(key.Namespace)) == 0
	if !isNamespace || len(validation.IsDNS1123Subdomain(key.Name)) > 0 {
		return key, wire.NewProblem(wire.NotFound, "no "+kind+" can have this name")
	}
	return key, nil
}

// list reads the objects of a kind; of all namespaces where none is named.
func list[T any, P interface {
	*T
	client.Object
}](r *reader, kind, namespace string, newList func() client.ObjectList) ([]T, error) {
	pointers, err := httpapi.ReadAll[P](r, r.Cluster, kind, newList, namespace)
	values := make([]T, 0, len(pointers))
	for _, p := range pointers {
		values = append(values, *p)
	}
	return values, err
}

// maybe reads objects that the page can do without: it says why they could not be read.
func maybe[T any, P interface {
	*T
	client.Object
}](r *reader, kind, namespace string, newList func() client.ObjectList) []T {
	values, err := list[T, P](r, kind, namespace, newList)
	if err != nil {
		r.unread[kind] = r.sentenceOf(err)
		return nil
	}
	return values
}

// get reads the object that the path names.
func get[T client.Object](r *reader, kind string, object T) (T, error) {
	key, err := r.key(kind)
	if err != nil {
		return object, err
	}
	return httpapi.ReadOne(r, r.Cluster, kind, object, key.Namespace, key.Name)
}

func newBaselines() client.ObjectList   { return &v1alpha1.BaselineList{} }
func newPlans() client.ObjectList       { return &v1alpha1.RemediationPlanList{} }
func newPolicies() client.ObjectList    { return &v1alpha1.RemediationPolicyList{} }
func newReleases() client.ObjectList    { return &v1alpha1.ABReleaseList{} }
func newAssessments() client.ObjectList { return &v1alpha1.EffectivenessAssessmentList{} }
func newLedgers() client.ObjectList     { return &v1alpha1.RemediationLedgerList{} }

// outlook asks policies what they will do about drifts; all policies where none is given.
func (r *reader) outlook(q explanation.Question) (view.Outlook, []string) {
	if len(q.Policies) == 0 {
		all, err := list[v1alpha1.RemediationPolicy](r, "RemediationPolicy", "", newPolicies)
		if err != nil {
			return view.Outlook{Unread: r.sentenceOf(err)}, nil
		}
		q.Policies = all
	}
	system := ""
	if ledgers, err := list[v1alpha1.RemediationLedger](r, "RemediationLedger", "", newLedgers); err == nil && len(ledgers) > 0 {
		system = ledgers[0].Namespace // ledgers that cannot be found are unknown, and that is told gate by gate
	}
	policies, err := explanation.ExplainPolicies(r, explanation.Cluster{Reader: r.Cluster, Mapper: r.Mapper, System: system}, &q, r.Now)
	var out view.Outlook
	var problems []string
	for i := range policies {
		for _, problem := range policies[i].Problems {
			problems = append(problems, problem.Error())
		}
		out.Explanations = append(out.Explanations, policies[i].Drifts...)
	}
	if err != nil {
		out.Unread = r.answerOf(err)
	}
	return out, problems
}

// sentenceOf says why objects could not be read.
func (r *reader) sentenceOf(err error) string { return httpapi.ProblemOf(r.log, err).Detail }

// answerOf says why a comparison or an explanation could not be made. The API server's own words about an
// object or a right are the caller's to read.
func (r *reader) answerOf(err error) string {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return err.Error()
	}
	return r.sentenceOf(err)
}
