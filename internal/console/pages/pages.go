// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// Cluster is what pages read, with the rights of the caller.
type Cluster struct {
	httpapi.Cluster
	// Mapper knows the resource of each kind.
	Mapper meta.RESTMapper
	// Live reads one object as the server writes it.
	Live func(ctx context.Context, mapping *meta.RESTMapping, namespace, name string) ([]byte, error)
	// Allows asks the API server whether the caller has a right.
	Allows func(context.Context, *authorizationv1.ResourceAttributes) (bool, error)
	// HasLogout says that callers have sessions, which they may end.
	HasLogout bool
}

// Pages answers the requests of browsers. [New] makes one.
type Pages struct {
	mux      *http.ServeMux
	patterns []string
	// ids name the patterns for metrics.
	ids     map[string]string
	cluster Cluster
	api     http.Handler
	log     *slog.Logger
}

// page is a row of the table of pages.
type page struct {
	pattern, title, entry string
	// queries are the parameters that the page takes.
	queries []string
	read    func(*reader) (view.Page, error)
	// verbs are the forms of the page.
	verbs []verb
}

// table has all pages.
func table() []page {
	return []page{
		{view.FleetPath + "{$}", "Fleet", view.FleetPath, []string{"namespace"}, readFleet, nil},
		{view.DriftPath, "Drift", view.DriftPath, []string{"namespace", "severity", "actor", "state"}, readDrift, nil},
		{view.ObjectPath + "{namespace}/{name}", "Object", view.DriftPath, nil, readObject, objectVerbs()},
		{view.PlansPath, "Plans", view.PlansPath, []string{"namespace", "policy", "phase"}, readPlans, nil},
		{view.PlansPath + "/{namespace}/{name}", "Plan", view.PlansPath, nil, readPlan, planVerbs()},
		{view.PoliciesPath, "Policies", view.PoliciesPath, nil, readPolicies, nil},
		{view.PoliciesPath + "/{name}", "Policy", view.PoliciesPath, []string{"namespace"}, readPolicy, policyVerbs()},
		{view.NewPolicyPath, "New", view.PoliciesPath, nil, readCreation, []verb{createVerb()}},
		{view.ReleasesPath, "Releases", view.ReleasesPath, []string{"namespace"}, readReleases, nil},
		{view.ReleasesPath + "/{namespace}/{name}", "Release", view.ReleasesPath, nil, readRelease, releaseVerbs()},
		{view.AssessmentsPath, "Assessments", view.AssessmentsPath, []string{"namespace", "verdict"}, readAssessments, nil},
		{view.AssessmentsPath + "/{namespace}/{name}", "Assessment", view.AssessmentsPath, nil, readAssessment, nil},
		{view.EvidencePath, "Evidence", view.EvidencePath, nil, readEvidence, nil},
		{view.EvidencePath + "/plans/{namespace}/{name}", "Evidence", view.EvidencePath, nil, readPlanEvidence, nil},
		{view.EvidencePath + "/releases/{namespace}/{name}", "Evidence", view.EvidencePath, nil, readReleaseEvidence, nil},
		{view.LedgersPath + "/{namespace}/{name}", "Remediation", view.FleetPath, nil, readLedger, ledgerVerbs()},
		{view.ProxiesPath, "Proxies", view.ProxiesPath, []string{"namespace", "stage"}, readProxies, nil},
		{view.ProxiesPath + "/{namespace}/{name}", "Proxy", view.ProxiesPath, nil, readProxy, nil},
		{view.WhoamiPath, "Whoami", view.WhoamiPath, []string{"namespace"}, readWhoami, nil},
	}
}

// New returns the pages about a cluster. Requests for no page go to the REST API, and so do those of forms.
func New(cluster Cluster, api http.Handler, log *slog.Logger) *Pages {
	p := &Pages{mux: http.NewServeMux(), ids: map[string]string{}, cluster: cluster, api: api, log: log}
	for _, row := range table() {
		id := "page-" + strings.ToLower(row.title)
		p.handle("GET "+row.pattern, id, func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, &row) })
		for i := range row.verbs {
			v := &row.verbs[i]
			path := row.pattern + "/" + v.name
			p.handle("POST "+path, "form-"+v.name, func(w http.ResponseWriter, r *http.Request) { p.submit(w, r, &row, v) })
			if v.asks != nil {
				again := page{pattern: path, title: row.title, entry: row.entry, queries: v.queries, read: v.asks}
				p.handle("GET "+path, id+"-"+v.name, func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, &again) })
			}
		}
	}
	p.handle("GET "+view.AssetsPath, AssetsID, http.FileServerFS(view.Assets).ServeHTTP)
	p.mux.Handle("/", api)
	return p
}

// AssetsID is the operation of the files that pages load.
const AssetsID = "page-assets"

func (p *Pages) handle(pattern, id string, handler http.HandlerFunc) {
	p.patterns = append(p.patterns, pattern)
	p.ids[pattern] = id
	p.mux.HandleFunc(pattern, handler)
}

// Routes returns the patterns of the pages, as http.ServeMux has them.
func (p *Pages) Routes() []string { return slices.Clone(p.patterns) }

// OperationOf names the page or the form that a request is for, by one of a fixed set of names; empty for a request
// to the REST API.
func (p *Pages) OperationOf(r *http.Request) string {
	_, pattern := p.mux.Handler(r)
	return p.ids[pattern]
}

// Refuse answers with a page that tells a problem.
func (p *Pages) Refuse(w http.ResponseWriter, r *http.Request, problem *wire.Problem) {
	row := page{pattern: r.Pattern, title: "Refused"}
	shown := p.refuse(&row, nil, wordsOf(problem))
	shown.Still = true
	p.answer(w, r, &row, problem.Status, &shown)
}

// ServeHTTP implements http.Handler.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// patience bounds how long a page waits for the API server.
const patience = 30 * time.Second

func (p *Pages) serve(w http.ResponseWriter, r *http.Request, row *page) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	in := p.newReader(ctx, r)
	status := http.StatusOK
	shown, err := p.read(in, row) //nolint:contextcheck // the reader is the context
	if err != nil {
		problem := httpapi.ProblemOf(p.log, err)
		status, shown = problem.Status, p.refuse(row, in, wordsOf(problem))
	}
	p.answer(w, r, row, status, &shown)
}

func (p *Pages) newReader(ctx context.Context, r *http.Request) *reader {
	return &reader{Context: ctx, Cluster: p.cluster, log: p.log, request: r, values: r.URL.Query(), unread: view.Unread{}}
}

// read makes the page that a request is for.
func (p *Pages) read(in *reader, row *page) (view.Page, error) {
	queries := row.queries
	if len(row.verbs) > 0 {
		queries = append(slices.Clone(queries), sentQuery)
	}
	if err := checkQuery(in.request, queries); err != nil {
		return view.Page{}, err
	}
	sent, err := sentOf(row, in.value(sentQuery))
	if err != nil {
		return view.Page{}, err
	}
	shown, err := row.read(in)
	if err == nil {
		shown.Sent = sent
		in.bar(&shown)
	}
	return shown, err
}

// answer sends a page.
func (p *Pages) answer(w http.ResponseWriter, r *http.Request, row *page, status int, shown *view.Page) {
	shown.HasLogout = p.cluster.HasLogout
	body, tag, err := view.Render(shown)
	if err != nil {
		p.log.Error("a page failed", "page", row.pattern, "error", err)
		httpapi.WriteProblem(w, wire.NewProblem(wire.Internal, "the log of Plumbline says more"))
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("ETag", tag)
	if status == http.StatusOK && r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller who does not listen needs no answer
}

// refuse makes the page in the place of one that could not be read. A caller without a right in the
// whole cluster may have the right in a namespace.
func (p *Pages) refuse(row *page, in *reader, why string) view.Page {
	var filters []view.Filter
	if slices.Contains(row.queries, "namespace") {
		filters = view.NamespaceFilter(in.value("namespace"))
	}
	return view.Refused(row.title, row.entry, why, filters, p.cluster.Now())
}

// wordsOf tells a problem, and the role of the chart that has a right that is missing.
func wordsOf(problem *wire.Problem) string {
	why := cmp.Or(problem.Detail, problem.Title)
	if right := problem.Right; right != nil {
		plural, _ := meta.UnsafeGuessKindToResource(v1alpha1.GroupVersion.WithKind(right.Kind))
		if role := view.RoleOf(right.Verb, plural.Resource); role != "" {
			why += fmt.Sprintf(": the ClusterRole %s has this right", role)
		}
	}
	return why
}

// checkQuery refuses parameters that a page does not take.
func checkQuery(r *http.Request, queries []string) error {
	for name := range r.URL.Query() {
		if !slices.Contains(queries, name) {
			return wire.NewProblem(wire.BadRequest, fmt.Sprintf("the page takes no query %q; it takes: %s", name, strings.Join(queries, ", ")))
		}
	}
	return nil
}
