// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The paths of the API.
const (
	remediationPath = Prefix + "/remediation"
	releasesPath    = Prefix + "/ab-releases"
)

// operation is a row of the table: its documentation and its handler.
type operation struct {
	method, path, id, summary, tag string
	// example is the address of a request that the document shows, and a test sends; headers and body are the
	// rest of this request.
	example string
	headers map[string]string
	body    string
	// status is that of the usual answer; soon is that of an answer to a request that is carried out already,
	// and 0 without such an answer.
	status, soon int
	register     func(api huma.API, op huma.Operation)
}

// operations are all that there are.
func operations() []operation { return append(append(reads(), streamEvents()), writes()...) }

// reads are the operations that change no object.
func reads() []operation {
	return []operation{
		get(remediationPath+"/policies", "list-policies", "List policies", "Remediation", "?environmentId=production", listPolicies),
		get(remediationPath+"/policies/{id}", "get-policy", "Get a policy", "Remediation", "production-auto-remediation", getPolicy),
		get(remediationPath+"/policies/{id}/status", "get-policy-status", "Get the status of a policy", "Remediation", "production-auto-remediation", getPolicyStatus),
		get(remediationPath+"/plans", "list-plans", "List plans", "Remediation", "?namespace=shop&status=running", listPlans),
		get(remediationPath+"/plans/{id}", "get-plan", "Get a plan", "Remediation", "shop.production-e82871e6b1", getPlan),
		get(remediationPath+"/history", "list-history", "List the results of plans that have ended, from the plans and from the evidence of plans that are gone", "Remediation", "?namespace=shop&limit=10", listHistory),
		get(remediationPath+"/history/{id}", "get-result", "Get the result of a plan", "Remediation", "shop.production-e82871e6b1", getResult),
		get(remediationPath+"/history/{id}/evidence", "get-evidence", "Get the signed records of a plan, with the verdict of their verification", "Remediation", "shop.done", getEvidence),
		get(remediationPath+"/ledgers", "list-ledgers", "List the ledgers that grant remediations", "Remediation", "?namespace=plumbline-system", listLedgers),
		get(remediationPath+"/ledgers/{id}", "get-ledger", "Get a ledger", "Remediation", exampleLedger, getLedger),
		get(releasesPath, "list-ab-releases", "List releases", "Releases", "?environmentId=production&status=running", listReleases),
		get(releasesPath+"/{id}", "get-ab-release", "Get a release with its stages", "Releases", "shop.web", getRelease),
		get(releasesPath+"/{id}/traffic", "get-ab-release-traffic", "Get where the requests of a release go", "Releases", "shop.web?history=true", getTraffic),
		get(releasesPath+"/{id}/health", "get-ab-release-health", "Get the health of the variations of a release", "Releases", "shop.web?history=true", getHealth),
		get(Prefix+"/rollout-strategies", "list-rollout-strategies", "List rollout strategies", "Releases", "", listStrategies),
		get(Prefix+"/rollout-strategies/{id}", "get-rollout-strategy", "Get a rollout strategy", "Releases", "canary-10-25-50-100", getStrategy),
		get(Prefix+"/baselines", "list-baselines", "List guarded objects", "Drift", "?namespace=shop&state=drifted", listBaselines),
		get(Prefix+"/baselines/{id}", "get-baseline", "Get a guarded object", "Drift", "shop.deployment-web", getBaseline),
		get(Prefix+"/environments", "list-environments", "List Environments", "Drift", "", listEnvironments),
		get(Prefix+"/environments/{id}", "get-environment", "Get an Environment", "Drift", "production", getEnvironment),
		get(Prefix+"/guards", "list-guards", "List guards", "Drift", "?limit=10", listGuards),
		get(Prefix+"/guards/{id}", "get-guard", "Get a guard", "Drift", "platform", getGuard),
		get(Prefix+"/assessments", "list-assessments", "List assessments", "Remediation", "?verdict=effective", listAssessments),
		get(Prefix+"/assessments/{id}", "get-assessment", "Get an assessment", "Remediation", "shop.production-e82871e6b1-0", getAssessment),
		get(Prefix+"/proxies", "list-proxies", "List the proxies of the mesh", "Releases", "?namespace=shop&stage=refused", listProxies),
		get(Prefix+"/whoami", "whoami", "Get the caller", "Caller", "", whoami),
	}
}

// get makes a row for a GET.
func get[I, O any](path, id, summary, tag, example string, do func(context.Context, *server, *I) (*O, error)) operation {
	return handled(operation{
		method: http.MethodGet, path: path, id: id, summary: summary, tag: tag, example: exampleOf(path, example), status: http.StatusOK,
	}, patience, do)
}

// handled gives a row its handler, which has so much time.
func handled[I, O any](o operation, within time.Duration, do func(context.Context, *server, *I) (*O, error)) operation {
	o.register = func(api huma.API, op huma.Operation) {
		huma.Register(api, op, func(ctx context.Context, in *I) (*O, error) {
			s := apiOf(ctx).server
			ctx, cancel := context.WithTimeout(ctx, within)
			defer cancel()
			out, err := do(ctx, s, in)
			if err != nil {
				return nil, problemOf(s.log, err)
			}
			return out, nil
		})
	}
	return o
}

// patience bounds how long a request waits for the API server.
const patience = 30 * time.Second

// InNamespace narrows a list down to one namespace.
type InNamespace struct {
	Namespace string `query:"namespace" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" doc:"Objects of this namespace alone. Without it, objects of all namespaces that the caller may read. A console demands the right to list all."`
}

// InEnvironment narrows a list down to one Environment.
type InEnvironment struct {
	EnvironmentID string `query:"environmentId" maxLength:"253" doc:"The uid or the name of an Environment."`
}

// keeps tells whether an object of the Environment with this name is asked for.
func (e *InEnvironment) keeps(name string, uids *wire.Uids) bool {
	return e.EnvironmentID == "" || e.EnvironmentID == name || e.EnvironmentID == uids.Environments[name]
}

type policyQuery struct {
	Page
	InEnvironment
}

func listPolicies(ctx context.Context, s *server, q *policyQuery) (*listed[wire.Policy], error) {
	return list(ctx, s, &q.Page, &policies, "", &q.InEnvironment,
		func(p *v1alpha1.RemediationPolicy, uids *wire.Uids) bool {
			return q.keeps(p.Spec.EnvironmentName, uids)
		}, wire.PolicyOf)
}

func getPolicy(ctx context.Context, s *server, in *ByID) (*got[wire.Policy], error) {
	p, uids, err := find(ctx, s, &policies, in.ID)
	if err != nil {
		return nil, err
	}
	return answer(in, PolicyTag(p), wire.PolicyOf(p, uids))
}

func getPolicyStatus(ctx context.Context, s *server, in *ByID) (*got[wire.PolicyStatus], error) {
	p, err := policies.one(ctx, s.cluster, in.ID)
	if err != nil {
		return nil, err
	}
	return answer(in, "", wire.PolicyStatusOf(p))
}

// PlanQuery narrows plans down.
type PlanQuery struct {
	Page
	InNamespace
	InEnvironment
	PolicyID string                     `query:"policyId" maxLength:"253" doc:"The uid or the name of a policy."`
	Status   wire.Word[wire.PlanStatus] `query:"status"`
	Since    time.Time                  `query:"since" doc:"Plans that were made at this time or later."`
}

func (q *PlanQuery) keeps(p *v1alpha1.RemediationPlan, uids *wire.Uids) bool {
	policy := p.Spec.Plan.Policy
	return q.InEnvironment.keeps(p.Spec.Plan.EnvironmentName, uids) &&
		(q.PolicyID == "" || q.PolicyID == policy.Name || q.PolicyID == policy.UID) &&
		(q.Status == "" || q.Status == wire.PlanStatusOf(p)) &&
		!p.CreationTimestamp.Time.Before(q.Since)
}

func listPlans(ctx context.Context, s *server, q *PlanQuery) (*listed[wire.Plan], error) {
	return list(ctx, s, &q.Page, &plans, q.Namespace, &q.InEnvironment, q.keeps, wire.PlanOf)
}

func getPlan(ctx context.Context, s *server, in *ByID) (*got[wire.Plan], error) {
	p, uids, err := find(ctx, s, &plans, in.ID)
	if err != nil {
		return nil, err
	}
	return answer(in, "", wire.PlanOf(p, uids))
}

type baselineQuery struct {
	Page
	InNamespace
	State wire.Word[v1alpha1.DriftState] `query:"state"`
}

func listBaselines(ctx context.Context, s *server, q *baselineQuery) (*listed[wire.Baseline], error) {
	return list(ctx, s, &q.Page, &baselines, q.Namespace, nil,
		func(b *v1alpha1.Baseline, _ *wire.Uids) bool {
			return q.State == "" || q.State == wire.Spell(b.Status.State)
		}, without(wire.BaselineOf))
}

func getBaseline(ctx context.Context, s *server, in *ByID) (*got[wire.Baseline], error) {
	return show(ctx, s, in, &baselines, wire.BaselineOf)
}

func listEnvironments(ctx context.Context, s *server, q *struct{ Page }) (*listed[wire.Environment], error) {
	return list(ctx, s, &q.Page, &environments, "", nil, all, without(wire.EnvironmentOf))
}

func getEnvironment(ctx context.Context, s *server, in *ByID) (*got[wire.Environment], error) {
	return show(ctx, s, in, &environments, wire.EnvironmentOf)
}

type guardQuery struct {
	Page
	InNamespace
}

func listGuards(ctx context.Context, s *server, q *guardQuery) (*listed[wire.Guard], error) {
	return list(ctx, s, &q.Page, &guards, q.Namespace, nil, all, without(guardOf))
}

func getGuard(ctx context.Context, s *server, in *ByID) (*got[wire.Guard], error) {
	return show(ctx, s, in, &guards, guardOf)
}

func guardOf(o client.Object) wire.Guard {
	if g, ok := o.(*v1alpha1.SpecGuard); ok {
		return wire.GuardOf(g)
	}
	return wire.ClusterGuardOf(o.(*v1alpha1.ClusterSpecGuard)) //nolint:forcetypeassert // allGuards reads these two
}

type assessmentQuery struct {
	Page
	InNamespace
	Verdict wire.Word[v1alpha1.EffectVerdict] `query:"verdict"`
}

func listAssessments(ctx context.Context, s *server, q *assessmentQuery) (*listed[wire.Assessment], error) {
	return list(ctx, s, &q.Page, &assessments, q.Namespace, nil,
		func(a *v1alpha1.EffectivenessAssessment, _ *wire.Uids) bool {
			return q.Verdict == "" || q.Verdict == wire.Spell(a.Status.Verdict)
		}, without(wire.AssessmentOf))
}

func getAssessment(ctx context.Context, s *server, in *ByID) (*got[wire.Assessment], error) {
	return show(ctx, s, in, &assessments, wire.AssessmentOf)
}

func whoami(ctx context.Context, s *server, _ *struct{}) (*got[wire.Whoami], error) {
	user, err := s.whoami(ctx)
	if err != nil {
		return nil, err
	}
	return answer(&ByID{}, "", wire.WhoamiOf(&user))
}

// whoami returns the caller, who has a name.
func (s *server) whoami(ctx context.Context) (authenticationv1.UserInfo, error) {
	user, err := s.cluster.Whoami(ctx)
	switch {
	case err != nil:
		return user, &requestError{verb: "create", kind: "SelfSubjectReview", err: err}
	case user.Username == "" || user.Username == anonymous:
		return user, wire.NewProblem(wire.Unauthenticated, "the API server does not know the caller")
	}
	return user, nil
}

const anonymous = "system:anonymous"
