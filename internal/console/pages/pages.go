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
}

// Pages answers the requests of browsers. [New] makes one.
type Pages struct {
	mux      *http.ServeMux
	patterns []string
	cluster  Cluster
	log      *slog.Logger
}

// page is a row of the table of pages.
type page struct {
	pattern, title, entry string
	// queries are the parameters that the page takes.
	queries []string
	read    func(*reader) (view.Page, error)
}

// table has all pages.
func table() []page {
	return []page{
		{view.FleetPath + "{$}", "Fleet", view.FleetPath, []string{"namespace"}, readFleet},
		{view.DriftPath, "Drift", view.DriftPath, []string{"namespace", "severity", "actor", "state"}, readDrift},
		{view.ObjectPath + "{namespace}/{name}", "Object", view.DriftPath, nil, readObject},
		{view.PlansPath, "Plans", view.PlansPath, []string{"namespace", "policy", "phase"}, readPlans},
		{view.PlansPath + "/{namespace}/{name}", "Plan", view.PlansPath, nil, readPlan},
		{view.PoliciesPath, "Policies", view.PoliciesPath, nil, readPolicies},
		{view.PoliciesPath + "/{name}", "Policy", view.PoliciesPath, []string{"namespace"}, readPolicy},
		{view.ReleasesPath, "Releases", view.ReleasesPath, []string{"namespace"}, readReleases},
		{view.ReleasesPath + "/{namespace}/{name}", "Release", view.ReleasesPath, nil, readRelease},
		{view.AssessmentsPath, "Assessments", view.AssessmentsPath, []string{"namespace", "verdict"}, readAssessments},
		{view.AssessmentsPath + "/{namespace}/{name}", "Assessment", view.AssessmentsPath, nil, readAssessment},
		{view.EvidencePath, "Evidence", view.EvidencePath, nil, readEvidence},
		{view.EvidencePath + "/plans/{namespace}/{name}", "Evidence", view.EvidencePath, nil, readPlanEvidence},
		{view.EvidencePath + "/releases/{namespace}/{name}", "Evidence", view.EvidencePath, nil, readReleaseEvidence},
		{view.ProxiesPath, "Proxies", view.ProxiesPath, []string{"namespace", "stage"}, readProxies},
		{view.ProxiesPath + "/{namespace}/{name}", "Proxy", view.ProxiesPath, nil, readProxy},
		{view.WhoamiPath, "Whoami", view.WhoamiPath, []string{"namespace"}, readWhoami},
	}
}

// New returns the pages about a cluster. Requests for no page go to next.
func New(cluster Cluster, next http.Handler, log *slog.Logger) *Pages {
	p := &Pages{mux: http.NewServeMux(), cluster: cluster, log: log}
	for _, row := range table() {
		p.handle("GET "+row.pattern, func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, &row) })
	}
	p.handle("GET "+view.AssetsPath, http.FileServerFS(view.Assets).ServeHTTP)
	p.mux.Handle("/", next)
	return p
}

func (p *Pages) handle(pattern string, handler http.HandlerFunc) {
	p.patterns = append(p.patterns, pattern)
	p.mux.HandleFunc(pattern, handler)
}

// Routes returns the patterns of the pages, as http.ServeMux has them.
func (p *Pages) Routes() []string { return slices.Clone(p.patterns) }

// ServeHTTP implements http.Handler.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.mux.ServeHTTP(w, r) }

// patience bounds how long a page waits for the API server.
const patience = 30 * time.Second

func (p *Pages) serve(w http.ResponseWriter, r *http.Request, row *page) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	in := &reader{Context: ctx, Cluster: p.cluster, log: p.log, request: r, unread: view.Unread{}}
	status := http.StatusOK
	shown, err := view.Page{}, checkQuery(r, row.queries)
	if err == nil {
		shown, err = row.read(in)
	}
	if err != nil {
		problem := httpapi.ProblemOf(p.log, err)
		status, shown = problem.Status, p.refuse(row, in, problem)
	}
	body, tag, err := view.Render(&shown)
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
func (p *Pages) refuse(row *page, in *reader, problem *wire.Problem) view.Page {
	var filters []view.Filter
	if slices.Contains(row.queries, "namespace") {
		filters = view.NamespaceFilter(in.query("namespace"))
	}
	why := cmp.Or(problem.Detail, problem.Title)
	if right := problem.Right; right != nil {
		plural, _ := meta.UnsafeGuessKindToResource(v1alpha1.GroupVersion.WithKind(right.Kind))
		if role := view.RoleOf(right.Verb, plural.Resource); role != "" {
			why += fmt.Sprintf(": the ClusterRole %s has this right", role)
		}
	}
	return view.Refused(row.title, row.entry, why, filters, p.cluster.Now())
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
