// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions/records"
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
	ofPlan := records.OfPlan(namespace, name)
	found, err := a.findRecords(ctx, &o.source, keys, fmt.Sprintf("plan %s/%s", namespace, name), func(r *evidence.Record) bool {
		return ofPlan(r) && (!oneStep || r.Step != nil && r.Step.Index == o.step)
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
	namespace, name := splitName(o.release, working)
	words := fmt.Sprintf("release %s/%s", namespace, name)
	if o.run > 0 {
		words = fmt.Sprintf("run %d of %s", o.run, words)
	}
	found, err := a.findRecords(cmd.Context(), &o.source, keys, words, records.OfRelease(namespace, name, o.run))
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

// findRecords reads the good records that are wanted, and fails without any of them.
func (a *app) findRecords(ctx context.Context, s *source, keys records.Keys, of string, wanted func(*evidence.Record) bool) (*records.Found, error) {
	store, closeStore, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer closeStore()
	found, err := records.Find(ctx, store, &records.Known{Keys: keys}, wanted)
	if err != nil {
		return nil, err
	}
	if problems := len(found.Report.Problems); problems > 0 {
		a.Warn("the store has %s; %s evidence verify tells which", plural.Of(problems, "problem"), invocation.DisplayName)
	}
	if len(found.Records) == 0 {
		return nil, fmt.Errorf("there is no good record of %s in %s", of, s.store)
	}
	return found, nil
}

func (a *app) printRecords(found *records.Found, output string) error {
	if invocation.IsStructured(output) {
		return a.PrintReport(output, "RecordList", map[string]any{"records": reportRecords(found)})
	}
	return a.Print(a.describeRecords(found, output == "wide"))
}

// evidenceWorld gives the namespace in which the user works, and the public keys,
// which are the only thing that a cluster is asked for.
func (a *app) evidenceWorld(ctx context.Context, s *source) (string, records.Keys, error) {
	if s.offline {
		namespace, _, err := a.ConfigFlags.ToRawKubeConfigLoader().Namespace()
		if err != nil {
			return "", records.Keys{}, err
		}
		keys, err := s.believed(ctx, nil, "")
		return namespace, keys, err
	}
	c, err := a.Connect()
	if err != nil {
		return "", records.Keys{}, err
	}
	system := s.system
	if len(s.keys) == 0 || s.store == "" {
		if system, err = c.FindSystemNamespace(ctx, system); err != nil {
			return "", records.Keys{}, err
		}
	}
	if err := s.find(ctx, c, system); err != nil {
		return "", records.Keys{}, err
	}
	keys, err := s.believed(ctx, c, system)
	return c.Namespace, keys, err
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

func reportRecords(found *records.Found) []recordReport {
	reports := make([]recordReport, 0, len(found.Records))
	for i := range found.Records {
		r := &found.Records[i]
		reports = append(reports, recordReport{
			Name: r.Name, Digest: r.Digest, KeyID: r.KeyID, Statement: r.Payload, WithdrawnBy: found.WithdrawnBy(&r.Record),
		})
	}
	return reports
}

func (a *app) describeRecords(found *records.Found, wide bool) string {
	d := &invocation.Description{}
	for i := range found.Records {
		s := &found.Records[i]
		if i > 0 {
			d.Line(0, "")
		}
		r := &s.Record
		d.Line(0, "#%d  %s  %s (%s)", r.Chain.Sequence, wording.NameRecord(r), wording.FormatTimestamp(metav1.NewTime(r.At)), a.FormatAgo(metav1.NewTime(r.At)))
		for _, field := range wording.DescribeRecord(s, found.WithdrawnBy(r), wide) {
			d.Field("  "+field.Label, field.Value)
		}
	}
	return d.String()
}
