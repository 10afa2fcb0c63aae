// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/remediate/evidence"
)

type evidenceGetOptions struct {
	evidenceSource
	output string
	step   int32
}

func (a *app) evidenceGetCommand() *cobra.Command {
	var o evidenceGetOptions
	cmd := &cobra.Command{
		Use:   "get [NAMESPACE/]PLAN --evidence URL",
		Short: "Print the records of a plan",
		Long: `Print the records of a plan: what was decided about it, and how each of its steps
ended. Only records with a good signature are shown; that the chain is whole is
for verify to say. The plan may be gone by now.

-o json and -o yaml print the signed statements.`,
		Example: examples(
			"# What was recorded about a plan", "%s evidence get production-3f9c2a -n shop --evidence s3://evidence?region=eu-central-1",
			"# One step, as it was signed, from a copy and without a cluster", "%s evidence get shop/production-3f9c2a --step 0 --evidence ./copy --key public.pem --offline -o json"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.evidenceGet(cmd, args, &o) },
		ValidArgsFunction: a.completePlan,
	}
	o.addFlags(cmd)
	addOutputFlag(cmd, &o.output, "json", "yaml", "wide")
	cmd.Flags().Int32Var(&o.step, "step", 0, "Only records of this step, from 0.")
	return cmd
}

func (a *app) evidenceGet(cmd *cobra.Command, args []string, o *evidenceGetOptions) error {
	if err := firstOf(checkOutput(cmd, o.output, "json", "yaml", "wide"), o.check(cmd)); err != nil {
		return err
	}
	plan, err := oneArgument(cmd, args, "plan")
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	working, keys, err := a.evidenceWorld(ctx, &o.evidenceSource)
	if err != nil {
		return err
	}
	namespace, name, found := strings.Cut(plan, "/")
	if !found {
		namespace, name = working, plan
	}
	records, problems, err := o.recordsOf(ctx, keys, func(r *evidence.Record) bool {
		ofStep := !cmd.Flags().Changed("step") || (r.Step != nil && r.Step.Index == o.step)
		return r.Plan != nil && r.Plan.Namespace == namespace && r.Plan.Name == name && ofStep
	})
	if err != nil {
		return err
	}
	if problems > 0 {
		a.warn("the store has %s; %s evidence verify tells which", plural(problems, "problem"), displayName)
	}
	if len(records) == 0 {
		return fmt.Errorf("there is no good record of plan %s/%s in %s", namespace, name, o.store)
	}
	if o.output == "json" || o.output == "yaml" {
		return a.printStructured(o.output, map[string]any{"records": reportRecords(records)})
	}
	return a.print(a.describeRecords(records, o.output == "wide"))
}

// evidenceWorld gives the namespace in which the user works, and the public keys,
// which are the only thing that a cluster is asked for.
func (a *app) evidenceWorld(ctx context.Context, s *evidenceSource) (string, *evidence.Keyring, error) {
	if s.offline {
		namespace, _, err := a.config.ToRawKubeConfigLoader().Namespace()
		if err != nil {
			return "", nil, err
		}
		keys, err := s.keyring(ctx, nil, "")
		return namespace, keys, err
	}
	c, err := a.connect()
	if err != nil {
		return "", nil, err
	}
	system := s.system
	if len(s.keys) == 0 || s.store == "" {
		if system, err = c.systemNamespace(ctx, system); err != nil {
			return "", nil, err
		}
	}
	if err := s.find(ctx, c, system); err != nil {
		return "", nil, err
	}
	keys, err := s.keyring(ctx, c, system)
	return c.namespace, keys, err
}

// recordsOf reads all chains and keeps the good records that are wanted, in the
// order of their chains; and counts what is wrong with any.
func (s *evidenceSource) recordsOf(ctx context.Context, keys *evidence.Keyring, wanted func(*evidence.Record) bool) ([]evidence.Sealed, int, error) {
	store, closeStore, err := s.open(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer closeStore()
	var records []evidence.Sealed
	report, err := evidence.Verify(ctx, store, keys, evidence.Options{Each: func(r evidence.Sealed) {
		if wanted(&r.Record) {
			records = append(records, r)
		}
	}})
	if err != nil {
		return nil, 0, err
	}
	return records, len(report.Problems), nil
}

// recordReport is one record as it was signed.
type recordReport struct {
	Name      string          `json:"name"`
	Digest    string          `json:"digest"`
	KeyID     string          `json:"keyID"`
	Statement json.RawMessage `json:"statement"`
}

func reportRecords(records []evidence.Sealed) []recordReport {
	reports := make([]recordReport, 0, len(records))
	for i := range records {
		r := &records[i]
		reports = append(reports, recordReport{Name: r.Name, Digest: r.Digest, KeyID: r.KeyID, Statement: r.Payload})
	}
	return reports
}

func (a *app) describeRecords(records []evidence.Sealed, wide bool) string {
	d := &description{}
	for i := range records {
		if i > 0 {
			d.line(0, "")
		}
		a.describeRecord(d, &records[i], wide)
	}
	return d.String()
}

func (a *app) describeRecord(d *description, s *evidence.Sealed, wide bool) {
	r := &s.Record
	d.line(0, "#%d  %s  %s (%s)", r.Chain.Sequence, recordWords(r), r.At.Format("2006-01-02T15:04:05Z"), a.ago(metav1.NewTime(r.At)))
	d.field("  Object", r.Subject.String())
	if r.Drift != nil {
		d.field("  Drift", fmt.Sprintf("%s: %s", plural(r.Drift.Total, "path"), strings.Join(r.Drift.Paths, ", ")))
	}
	if r.Severity != nil {
		d.field("  Severity", fmt.Sprintf("%s (%d)", r.Severity.Level, r.Severity.Score))
	}
	if i := r.Intent; i != nil {
		d.field("  Intent", fmt.Sprintf("version %s, %s → %s", i.ResourceVersion, hashWords(i.PreHash, wide), hashWords(i.DesiredHash, wide)))
	}
	if r.Result.ResourceVersion != "" {
		d.field("  Wrote", fmt.Sprintf("version %s, %s (%s)", r.Result.ResourceVersion, hashWords(r.Result.Hash, wide), r.Result.Origin))
	}
	if r.Policy != nil {
		d.field("  Policy", fmt.Sprintf("%s (%s)", r.Policy.Name, hashWords(r.Policy.Digest, wide)))
	}
	d.field("  Initiated by", initiatedWords(r))
	d.field("  Record", fmt.Sprintf("%s, signed by key %s", hashWords(s.Digest, wide), shortKey(s.KeyID, wide)))
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
	return withReason(words, ended)
}

func initiatedWords(r *evidence.Record) string {
	words := r.InitiatedBy
	if r.Requester != "" {
		words += ", acting with the rights of " + r.Requester
	}
	if r.Approver != "" {
		words += ", approved by " + r.Approver
	}
	return words
}

func shortKey(id string, wide bool) string {
	if wide || len(id) <= hashDigits {
		return id
	}
	return id[:hashDigits]
}
