// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/cli/remediation"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/plural"
)

type getOptions struct {
	source
	output  string
	step    int32
	release string
	run     int64
}

func (a *app) getCommand() *cobra.Command {
	var o getOptions
	cmd := &cobra.Command{
		Use:   "get ([NAMESPACE/]PLAN | --release [NAMESPACE/]NAME) --evidence URL",
		Short: "Print the evidence packet of a plan, or the records of a release",
		Long: `Print the evidence packet of a plan: its drift and the severity, the policy and the
plan, the end and duration of each step, the requester, the writes, and the
signed records. Only records with a good signature count, and only contents with the
digest that a record names; verify checks whether the chain is whole. The plan may
be gone by now.

-o json and -o yaml print the packet with all contents and signed statements.
Values that look like secrets are replaced in the contents. --step prints only the
records of one step.

--release prints the records of an ABRelease instead: its decisions, and the intent
and the end of each work. --run prints only those of one run. The release may be gone
by now.`,
		Example: invocation.Examples(
			"# Print an auditor's packet of a plan", "%s evidence get production-3f9c2a -n shop --evidence s3://evidence?region=eu-central-1",
			"# The policy as it was then", "%s evidence get production-3f9c2a -n shop --evidence ./copy -o json | jq .policy.body",
			"# One step, as it was signed, from a copy and without a cluster", "%s evidence get shop/production-3f9c2a --step 0 --evidence ./copy --key public.pem --offline -o json",
			"# Run 7 of a release", "%s evidence get --release pay --run 7 -n shop --evidence ./copy"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.get(cmd, args, &o) },
		ValidArgsFunction: remediation.CompletePlan(a.Invocation),
	}
	o.addFlags(cmd)
	invocation.AddOutputFlag(cmd, &o.output, "json", "yaml", "wide")
	cmd.Flags().Int32Var(&o.step, "step", 0, "Only records of this step, from 0.")
	cmd.Flags().StringVar(&o.release, "release", "", "Print the records of this ABRelease.")
	cmd.Flags().Int64Var(&o.run, "run", 0, "Only records of this run of the release, from 1.")
	return cmd
}

func (a *app) get(cmd *cobra.Command, args []string, o *getOptions) error {
	if err := invocation.FirstError(invocation.CheckOutput(cmd, o.output, "json", "yaml", "wide"), o.check(cmd)); err != nil {
		return err
	}
	if o.release != "" || cmd.Flags().Changed("run") {
		return a.getRelease(cmd, args, o)
	}
	plan, err := invocation.OneArgument(cmd, args, "plan")
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	working, keys, err := a.evidenceWorld(ctx, &o.source)
	if err != nil {
		return err
	}
	namespace, name := splitName(plan, working)
	oneStep := cmd.Flags().Changed("step")
	found, err := a.findRecords(ctx, &o.source, keys, fmt.Sprintf("plan %s/%s", namespace, name), func(r *evidence.Record) bool {
		ofStep := !oneStep || (r.Step != nil && r.Step.Index == o.step)
		return r.Plan != nil && r.Plan.Namespace == namespace && r.Plan.Name == name && ofStep
	})
	if err != nil {
		return err
	}
	if !oneStep {
		return a.printPacket(ctx, &o.source, found, o.output)
	}
	return a.printRecords(found, o.output)
}

// getRelease prints the records of a release.
func (a *app) getRelease(cmd *cobra.Command, args []string, o *getOptions) error {
	switch {
	case o.release == "":
		return invocation.UsageErrorf(cmd, "--run needs --release")
	case cmd.Flags().Changed("run") && o.run < 1:
		return invocation.UsageErrorf(cmd, "--run is %d; runs count from 1", o.run)
	case cmd.Flags().Changed("step"):
		return invocation.UsageErrorf(cmd, "--step and --release exclude each other: a release has no steps")
	}
	if err := invocation.NoArguments(cmd, args); err != nil {
		return err
	}
	working, keys, err := a.evidenceWorld(cmd.Context(), &o.source)
	if err != nil {
		return err
	}
	filter := releaseFilter{run: o.run}
	filter.namespace, filter.name = splitName(o.release, working)
	found, err := a.findRecords(cmd.Context(), &o.source, keys, filter.String(), filter.matches)
	if err != nil {
		return err
	}
	return a.printRecords(found, o.output)
}

// splitName takes the namespace from the name, or else the one in which the user works.
func splitName(qualified, working string) (namespace, name string) {
	if namespace, name, found := strings.Cut(qualified, "/"); found {
		return namespace, name
	}
	return working, qualified
}

// findRecords reads the good records that are wanted, and fails if the store has none of them.
func (a *app) findRecords(ctx context.Context, s *source, keys believed, of string, wanted func(*evidence.Record) bool) (*recordsFound, error) {
	found, err := s.recordsOf(ctx, keys, wanted)
	if err != nil {
		return nil, err
	}
	if found.problems > 0 {
		a.Warn("the store has %s; %s evidence verify tells which", plural.Of(found.problems, "problem"), invocation.DisplayName)
	}
	if len(found.records) == 0 {
		return nil, fmt.Errorf("there is no good record of %s in %s", of, s.store)
	}
	return found, nil
}

func (a *app) printRecords(found *recordsFound, output string) error {
	if output == "json" || output == "yaml" {
		return a.PrintStructured(output, map[string]any{"records": reportRecords(found)})
	}
	return a.Print(a.describeRecords(found, output == "wide"))
}

// evidenceWorld gives the namespace in which the user works, and the public keys,
// which are the only thing that a cluster is asked for.
func (a *app) evidenceWorld(ctx context.Context, s *source) (string, believed, error) {
	if s.offline {
		namespace, _, err := a.ConfigFlags.ToRawKubeConfigLoader().Namespace()
		if err != nil {
			return "", believed{}, err
		}
		keys, err := s.believed(ctx, nil, "")
		return namespace, keys, err
	}
	c, err := a.Connect()
	if err != nil {
		return "", believed{}, err
	}
	system := s.system
	if len(s.keys) == 0 || s.store == "" {
		if system, err = c.FindSystemNamespace(ctx, system); err != nil {
			return "", believed{}, err
		}
	}
	if err := s.find(ctx, c, system); err != nil {
		return "", believed{}, err
	}
	keys, err := s.believed(ctx, c, system)
	return c.Namespace, keys, err
}

// recordsFound are good records, which of them are withdrawn, and by which record; and how
// many problems the store has.
type recordsFound struct {
	records   []evidence.Sealed
	withdrawn map[place]int64
	problems  int
}

// place is where a record stands.
type place struct {
	chain    string
	sequence int64
}

func (f *recordsFound) withdrawnBy(r *evidence.Record) int64 {
	return f.withdrawn[place{r.Chain.UID, r.Chain.Sequence}]
}

// recordsOf reads all chains and keeps the good records that are wanted, in the
// order of their chains; and counts what is wrong with any.
func (s *source) recordsOf(ctx context.Context, keys believed, wanted func(*evidence.Record) bool) (*recordsFound, error) {
	store, closeStore, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer closeStore()
	found := &recordsFound{withdrawn: map[place]int64{}}
	report, err := evidence.Verify(ctx, store, keys.ring, evidence.Options{Ends: keys.ends, Each: func(r evidence.Sealed) {
		if wanted(&r.Record) {
			found.records = append(found.records, r)
		}
	}})
	if err != nil {
		return nil, err
	}
	for i := range report.Chains {
		for _, w := range report.Chains[i].Withdrawn {
			found.withdrawn[place{report.Chains[i].UID, w.Sequence}] = w.By
		}
	}
	found.problems = len(report.Problems)
	return found, nil
}

// recordReport is one record as it was signed.
type recordReport struct {
	Name      string          `json:"name"`
	Digest    string          `json:"digest"`
	KeyID     string          `json:"keyID"`
	Statement json.RawMessage `json:"statement"`
	// WithdrawnBy is the sequence of the record that withdraws this one.
	WithdrawnBy int64 `json:"withdrawnBy,omitempty"`
}

func reportRecords(found *recordsFound) []recordReport {
	reports := make([]recordReport, 0, len(found.records))
	for i := range found.records {
		r := &found.records[i]
		reports = append(reports, recordReport{
			Name: r.Name, Digest: r.Digest, KeyID: r.KeyID, Statement: r.Payload, WithdrawnBy: found.withdrawnBy(&r.Record),
		})
	}
	return reports
}

func (a *app) describeRecords(found *recordsFound, wide bool) string {
	d := &invocation.Description{}
	for i := range found.records {
		if i > 0 {
			d.Line(0, "")
		}
		a.describeRecord(d, &found.records[i], wide)
		if by := found.withdrawnBy(&found.records[i].Record); by > 0 {
			d.Field("  Withdrawn", fmt.Sprintf("by #%d: this was decided and never stored", by))
		}
	}
	return d.String()
}

func (a *app) describeRecord(d *invocation.Description, s *evidence.Sealed, wide bool) {
	r := &s.Record
	d.Line(0, "#%d  %s  %s (%s)", r.Chain.Sequence, recordWords(r), r.At.Format("2006-01-02T15:04:05Z"), a.FormatAgo(metav1.NewTime(r.At)))
	d.Field("  Object", r.Subject.String())
	describeDelivery(d, r.Delivery, wide)
	if r.Withdraws != nil {
		d.Field("  Withdraws", fmt.Sprintf("#%d, which was decided and never stored", r.Withdraws.Sequence))
	}
	if r.Drift != nil {
		d.Field("  Drift", fmt.Sprintf("%s: %s", plural.Of(r.Drift.Total, "path"), strings.Join(r.Drift.Paths, ", ")))
	}
	if r.Severity != nil {
		d.Field("  Severity", fmt.Sprintf("%s (%d)", r.Severity.Level, r.Severity.Score))
	}
	if i := r.Intent; i != nil {
		d.Field("  Intent", fmt.Sprintf("version %s, %s → %s", i.ResourceVersion, wording.FormatHash(i.PreHash, wide), wording.FormatHash(i.DesiredHash, wide)))
	}
	if r.Result.ResourceVersion != "" {
		d.Field("  Wrote", fmt.Sprintf("version %s, %s (%s)", r.Result.ResourceVersion, wording.FormatHash(r.Result.Hash, wide), r.Result.Origin))
	}
	describeAssessment(d, r.Assessment, wide)
	if r.Policy != nil {
		d.Field("  Policy", fmt.Sprintf("%s (%s)", r.Policy.Name, wording.FormatHash(r.Policy.Digest, wide)))
	}
	d.Field("  Initiated by", initiatedWords(r))
	d.Field("  Record", fmt.Sprintf("%s, signed by key %s", wording.FormatHash(s.Digest, wide), shortKey(s.KeyID, wide)))
}

// recordWords is what a record is about: Step 0 Reconcile: Verified.
func recordWords(r *evidence.Record) string {
	words := string(r.Kind)
	if r.Step != nil {
		words += fmt.Sprintf(" %d %s", r.Step.Index, r.Step.Action)
	}
	ended := r.Result.State
	if r.Result.Reason != "" {
		ended = strings.TrimSpace(ended + " (" + r.Result.Reason + ")")
	}
	return wording.AppendReason(words, ended)
}

func initiatedWords(r *evidence.Record) string {
	words := r.InitiatedBy
	if r.Requester != "" {
		words += ", acting with the permissions of " + r.Requester
	}
	if r.Approver != "" {
		words += ", approved by " + r.Approver
	}
	return words
}

func shortKey(id string, wide bool) string {
	if wide || len(id) <= actions.HashDigits {
		return id
	}
	return id[:actions.HashDigits]
}
