// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/packet"
)

type historyQuery struct {
	PlanQuery
	Source wire.Word[wire.Source] `query:"source" doc:"plan has the plans that are kept alone, and evidence the plans that evidence alone tells of. Without it the list has both, and needs the signed records."`
}

// listHistory answers with the results of the plans that are kept, and with those of the plans that evidence alone
// tells of. Evidence that cannot be read is a problem: a list without it would say that there was no other plan.
func listHistory(ctx context.Context, s *server, q *historyQuery) (*listed[wire.Result], error) {
	kept, uids, err := selected(ctx, s, &plans, q.Namespace, &q.InEnvironment, all)
	if err != nil {
		return nil, err
	}
	var results []wire.Result
	for _, p := range kept {
		if q.Source != wire.Spell(wire.FromEvidence) && wording.HasEnded(p) && q.keeps(p, uids) {
			results = append(results, wire.ResultOf(p))
		}
	}
	if q.Source != wire.Spell(wire.FromPlan) {
		recorded, err := q.recorded(ctx, s, kept)
		if err != nil {
			return nil, err
		}
		results = append(results, recorded...)
	}
	return paged(&q.Page, results, placeOfResult, func(r wire.Result) wire.Result { return r })
}

// placeOfResult tells two plans apart that had one name, one after the other.
func placeOfResult(r wire.Result) place { return place{r.Namespace, r.PlanName + "/" + r.PlanID} }

// recorded returns the results of plans that evidence alone tells of.
func (q *historyQuery) recorded(ctx context.Context, s *server, kept []*v1alpha1.RemediationPlan) (results []wire.Result, err error) {
	if q.EnvironmentID != "" {
		return nil, wire.NewProblem(wire.BadRequest, "", wire.FieldError{Location: "query.environmentId", Message: "records do not name the Environment: add source=plan"})
	}
	archive, err := OpenArchive(ctx, s.cluster)
	if err != nil {
		return nil, err
	}
	isKept := map[string]bool{}
	for _, p := range kept {
		isKept[string(p.UID)] = true
	}
	found, err := records.Find(ctx, records.WithoutBodies(archive.Store), &records.Known{Keys: archive.Known.Keys}, func(r *evidence.Record) bool {
		return r.Plan != nil && !isKept[r.Plan.UID] && (q.Namespace == "" || r.Plan.Namespace == q.Namespace)
	})
	if err != nil {
		return nil, err
	}
	for _, p := range found.Ended() {
		if result := wire.ResultOfPacket(p); q.keepsPacket(p, &result) {
			results = append(results, result)
		}
	}
	return results, nil
}

func (q *historyQuery) keepsPacket(p *packet.Packet, result *wire.Result) bool {
	return (q.PolicyID == "" || q.PolicyID == p.Policy.Name || q.PolicyID == p.Policy.UID) &&
		(q.Status == "" || q.Status == result.Status) && !p.InitiatedAt.Before(q.Since)
}

func getResult(ctx context.Context, s *server, in *ByID) (*got[wire.Result], error) {
	p, err := plans.one(ctx, s.cluster, in.ID)
	switch {
	case err == nil:
		return answer(in, "", wire.ResultOf(p))
	case !isNotFound(err):
		return nil, err
	}
	e, err := ReadEvidence(ctx, s.cluster, in.ID, nil)
	if err != nil {
		return nil, err
	}
	return answer(in, "", wire.ResultOfPacket(e.Packet))
}

// Evidence has the facts of the signed records of a plan, and whether the records are whole.
type Evidence struct {
	Packet *packet.Packet
	// Found has the records of the plan, and the report about all records of its chain.
	Found    *records.Found
	Warnings []string
}

// ReadEvidence reads and verifies the signed records of a plan by its uid or by NAMESPACE.NAME. kept is the plan while
// the cluster has it, and nil afterwards: then the chains of all policies are read.
func ReadEvidence(ctx context.Context, c Cluster, id string, kept *v1alpha1.RemediationPlan) (*Evidence, error) {
	archive, err := OpenArchive(ctx, c)
	if err != nil {
		return nil, err
	}
	namespace, name, _ := strings.Cut(id, ".")
	wanted := records.OfPlan(namespace, name)
	if uidForm.MatchString(id) {
		wanted = func(r *evidence.Record) bool { return r.Plan != nil && r.Plan.UID == id }
	}
	if kept != nil {
		wanted = func(r *evidence.Record) bool { return r.Plan != nil && r.Plan.UID == string(kept.UID) }
		archive.Known.Chains = []string{kept.Spec.Plan.Policy.UID}
		if wording.HasEnded(kept) {
			archive.Known.Plans = []evidence.PlanStatus{packet.StatusOf(kept)}
		}
	}
	found, err := archive.Find(ctx, wanted)
	if err != nil {
		return nil, err
	}
	if len(found.Records) == 0 {
		return nil, wire.NewProblem(wire.NotFound, "no plan, and no good record of a plan, has this id or name, or you may not read it")
	}
	e := &Evidence{Found: found, Warnings: archive.Warnings}
	e.Packet, err = found.Packet(ctx, archive.Store)
	return e, err
}

// download is the answer of an operation that a browser saves as a file.
type download[W any] struct {
	ETag        string `header:"ETag" doc:"The strong ETag of the representation."`
	Disposition string `header:"Content-Disposition" doc:"A name for the file."`
	Body        W
}

func getEvidence(ctx context.Context, s *server, in *ByID) (*download[wire.Evidence], error) {
	kept, err := plans.one(ctx, s.cluster, in.ID)
	switch {
	case isNotFound(err):
		kept = nil
	case err != nil:
		return nil, err
	}
	e, err := ReadEvidence(ctx, s.cluster, in.ID, kept)
	if err != nil {
		return nil, err
	}
	out, err := answer(in, "", e.show())
	if err != nil {
		return nil, err
	}
	file := "evidence-" + safeName(e.Packet.Plan.Namespace) + "-" + safeName(e.Packet.Plan.Name) + ".json"
	return &download[wire.Evidence]{ETag: out.ETag, Disposition: `attachment; filename="` + file + `"`, Body: out.Body}, nil
}

func (e *Evidence) show() wire.Evidence {
	envelopes := make([]json.RawMessage, 0, len(e.Found.Records))
	for i := range e.Found.Records {
		envelopes = append(envelopes, e.Found.Records[i].Envelope)
	}
	return wire.EvidenceOf(e.Packet, envelopes, e.Found.ProblemsOf(e.Packet.Chain.UID), e.Warnings)
}

// longestName bounds each part of the name of a file.
const longestName = 63

// safeName replaces each character that no name of Kubernetes has: the writer of a record chooses the names in it.
func safeName(name string) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, name)
	return safe[:min(len(safe), longestName)]
}
