// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/actions/records"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

type verifyOptions struct {
	source
	output    string
	anchor    string
	auditLogs []string
	writers   []string
	since     time.Duration
	sinceTime string
	untilTime string
	bounds    evidence.JoinOptions
}

func (a *app) verifyCommand() *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Prove that the records are whole",
		Long: `Verify all records of a store: each signature, and that each chain has no gap, no
record twice and no record from elsewhere. The cluster has the end of each chain
(RemediationLedgers), the records at earlier times (the anchor, which the executor
cannot write), and the records that the plans that have ended name. With --offline
that is left out, and missing records at the end of a chain are not seen: the end of
the chain is unknown, unless --anchor names it.

--audit-log compares the records with the API server's audit log: writes of the
executor without a record, records without a write. Writes for ReleaseWorks have
their records in the chain of the Environment. The log must hold the bodies of
the executor's writes. Where it does not cover all of the time of the
records, --since, --since-time and --until-time select the time to compare.

Exit status: 0 the records are whole. 1 a record is wrong or missing.
2 unknown: there are no records, or a part could not be read.
3 the present records are valid, and the end of a chain is
unknown: records could be missing there.`,
		Example: invocation.Examples(
			"# Are the records whole", "%s evidence verify --evidence s3://evidence?region=eu-central-1",
			"# A copy of the volume, together with the audit log of the last day", "%s evidence verify --evidence ./copy --audit-log audit.log --audit-log audit-2026-03-01.log.gz --since 24h",
			"# Without a cluster, for an auditor", "%s evidence verify --evidence ./copy --key public.pem --offline -o json"),
		Annotations: map[string]string{invocation.TroubleAnnotation: "evidence verify"},
		Args:        invocation.NoArguments,
		RunE:        func(cmd *cobra.Command, _ []string) error { return a.verify(cmd, &o) },
	}
	o.addFlags(cmd)
	invocation.AddOutputFlag(cmd, &o.output, "json", "yaml")
	flags := cmd.Flags()
	flags.StringVar(&o.anchor, "anchor", "", "File with the ConfigMap "+records.AnchorConfigMap+", as JSON or YAML. Left out: that of Plumbline's namespace.")
	flags.StringArrayVar(&o.auditLogs, "audit-log", nil, "File of the API server's audit log, plain or .gz, repeatable.")
	flags.StringSliceVar(&o.writers, "writer", nil, "Users that must have a record of each write. If unset, the executor's service account in Plumbline's namespace.")
	flags.DurationVar(&o.since, "since", 0, "Compare only records newer than this with the audit log, e.g. 24h.")
	flags.StringVar(&o.sinceTime, "since-time", "", "The same as a time, e.g. 2026-03-01T00:00:00Z.")
	flags.StringVar(&o.untilTime, "until-time", "", "Compare only records older than this time with the audit log.")
	invocation.MustMarkFilename(cmd, "audit-log", "log", "gz")
	invocation.MustMarkFilename(cmd, "anchor", "json", "yaml")
	return cmd
}

func (o *verifyOptions) validate(cmd *cobra.Command, now time.Time) error {
	if err := invocation.FirstError(invocation.CheckOutput(cmd, o.output, "json", "yaml"), o.check(cmd)); err != nil {
		return err
	}
	bounded := o.since != 0 || o.sinceTime != "" || o.untilTime != ""
	switch {
	case bounded && len(o.auditLogs) == 0:
		return invocation.UsageErrorf(cmd, "--since, --since-time and --until-time are about the audit log; name it with --audit-log")
	case len(o.writers) > 0 && len(o.auditLogs) == 0:
		return invocation.UsageErrorf(cmd, "--writer is about the audit log; name it with --audit-log")
	case o.since < 0:
		return invocation.UsageErrorf(cmd, "--since must be longer than 0, not %s", o.since)
	case o.since > 0 && o.sinceTime != "":
		return invocation.UsageErrorf(cmd, "--since and --since-time exclude each other")
	}
	if o.since > 0 {
		o.bounds.Since = now.Add(-o.since)
	}
	for _, bound := range []struct {
		flag, text string
		into       *time.Time
	}{{"since-time", o.sinceTime, &o.bounds.Since}, {"until-time", o.untilTime, &o.bounds.Until}} {
		if bound.text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, bound.text)
		if err != nil {
			return invocation.UsageErrorf(cmd, "invalid --%s %q, want a time like 2026-03-01T00:00:00Z", bound.flag, bound.text)
		}
		*bound.into = at
	}
	return nil
}

func (a *app) verify(cmd *cobra.Command, o *verifyOptions) error {
	if err := o.validate(cmd, a.Now()); err != nil {
		return err
	}
	ctx := cmd.Context()
	known, err := a.evidenceKnown(ctx, o)
	if err != nil {
		return err
	}
	report, all, err := o.verify(ctx, known)
	if err != nil {
		return err
	}
	if len(o.auditLogs) > 0 {
		if report.Audit, err = o.join(all, known.writers); err != nil {
			return err
		}
		report.Problems = append(report.Problems, report.Audit.problems...)
	}
	report.OK = len(report.Problems) == 0 && report.Records > 0 && len(report.OpenEnds) == 0
	if o.output != "" {
		err = a.PrintReport(o.output, "VerificationReport", report)
	} else {
		err = a.Print(a.describeEvidence(report))
	}
	switch {
	case err != nil:
		return err
	case len(report.Problems) > 0:
		return &invocation.ExitError{Code: invocation.ExitDifferent}
	case report.Records == 0:
		return fmt.Errorf("there is no record to verify in %s", o.store)
	case len(report.OpenEnds) > 0:
		return &invocation.ExitError{Code: invocation.ExitOpenEnd}
	}
	return nil
}

// evidenceKnown has the known facts about records besides the records.
type evidenceKnown struct {
	records.Known
	writers []string
	offline bool
}

// evidenceKnown asks the cluster. All of it is read before the first record. So
// the store can have more records than noted, and never fewer.
func (a *app) evidenceKnown(ctx context.Context, o *verifyOptions) (*evidenceKnown, error) {
	known := &evidenceKnown{offline: o.offline, writers: o.writers}
	system := o.system
	if o.offline && system == "" {
		system = actions.SystemNamespace
	}
	var c *invocation.Cluster
	if !o.offline {
		var err error
		if c, err = a.Connect(); err != nil {
			return nil, err
		}
		if system, err = c.FindSystemNamespace(ctx, o.system); err != nil {
			return nil, err
		}
		if err := errors.Join(known.ask(ctx, c, system), o.find(ctx, c, system)); err != nil {
			return nil, err
		}
	}
	if len(known.writers) == 0 {
		known.writers = []string{"system:serviceaccount:" + system + ":plumbline-executor"}
	}
	var failed, err error
	if known.Anchors, failed = o.anchored(ctx, c, system); apierrors.IsForbidden(failed) {
		a.Warn("%v; the ledgers alone tell where the chains end", failed)
		failed = nil
	}
	known.Keys, err = o.believed(ctx, c, system)
	return known, errors.Join(err, failed)
}

func (k *evidenceKnown) ask(ctx context.Context, c *invocation.Cluster, system string) (err error) {
	if k.Heads, err = records.ReadHeads(ctx, c, system); err != nil {
		return fmt.Errorf("reading how far the chains go (--offline leaves that out): %w", err)
	}
	if k.Plans, k.Running, err = records.ReadPlans(ctx, c); err != nil {
		return fmt.Errorf("reading which records the plans name (--offline leaves that out): %w", err)
	}
	return nil
}

// verify reads the store.
func (o *verifyOptions) verify(ctx context.Context, known *evidenceKnown) (*evidenceReport, []evidence.Record, error) {
	store, closeStore, err := o.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer closeStore()
	var all []evidence.Record
	found, err := records.Find(ctx, store, &known.Known, func(r *evidence.Record) bool {
		all = append(all, *r)
		return false // without the envelopes, a large store takes less memory
	})
	if err != nil {
		return nil, nil, err
	}
	return newEvidenceReport(o.store, known, found), all, nil
}

// join compares the records with the audit log.
func (o *verifyOptions) join(all []evidence.Record, writers []string) (*auditReport, error) {
	log := &evidence.AuditLog{}
	for _, name := range o.auditLogs {
		if err := readAudit(name, evidence.AuditFilter{Users: writers}, log); err != nil {
			return nil, err
		}
	}
	if log.Events == 0 {
		return nil, errors.New("the audit log has no event to compare")
	}
	return newAuditReport(log, evidence.Join(all, log, o.bounds), writers, all, o.bounds), nil
}

func readAudit(name string, filter evidence.AuditFilter, log *evidence.AuditLog) (err error) {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return evidence.ReadAudit(file, filter, log)
}
