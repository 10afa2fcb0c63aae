// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/internal/buildinfo"
	"github.com/plumbline-dev/plumbline/internal/elected"
	"github.com/plumbline-dev/plumbline/internal/evidencehttp"
	"github.com/plumbline-dev/plumbline/internal/executor"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/pkg/evidence/bucket"
	"github.com/plumbline-dev/plumbline/pkg/remediate/redisguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/details"
)

func (p *process) execute(ctx context.Context, opts *assessor.Options, roles *roleOptions, gate *elected.Gate) (func(context.Context) error, error) {
	mine := &roles.execute
	keys, err := mine.Keys()
	if err != nil {
		return nil, err
	}
	store, err := bucket.Open(ctx, mine.Evidence)
	if err != nil {
		return nil, err
	}
	if mine.ServeEvidence {
		p.records = evidencehttp.Handler(store)
	}
	config, err := p.connect("executor", opts.Kubeconfig)
	if err != nil {
		return nil, err
	}
	marks, err := keys.Signer.DeriveKey(purposeOfMarks)
	if err != nil {
		return nil, err
	}
	tell, err := notifications(opts, &roles.notify, marks)
	if err != nil {
		return nil, err
	}
	mirror, err := p.mirror(opts)
	if err != nil {
		return nil, err
	}
	setup := executor.Setup{
		Config: config, Namespace: opts.Namespace, LeaderElect: opts.LeaderElect, User: opts.ExecutorUser, Caps: mine.Caps(),
		Evidence: evidence.Writer{Store: store, Signer: keys.Signer, Old: keys.Old, Keys: keys.Ring},
		Builder:  evidence.Builder{Version: version(buildinfo.Read())}, PublicKeys: keys.Public,
		Notifications: tell, Mirror: mirror, ReleaseWorks: mine.ReleaseWorks, Mesh: mine.Mesh, AssessesEffects: mine.AssessesEffects,
		Registry: p.registry, Log: p.log, Clock: clock.RealClock{}, Ready: gate.Open,
	}
	if err := underFaults(&setup); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		return errors.Join(executor.Run(ctx, setup), closeRecords(ctx, store))
	}, nil
}

// closeWithin bounds how long a process that ends waits for its store of records.
const closeWithin = 5 * time.Second

// closeRecords waits for calls that the executor has given up: a process that ends in the middle
// of a write would leave a temporary file.
func closeRecords(ctx context.Context, store evidence.OwnedStore) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	return store.Close(ctx)
}

// mirror is the copy of the ledgers in Redis; nil without Redis.
func (p *process) mirror(opts *assessor.Options) (*redisguard.Mirror, error) {
	if opts.Redis.Address == "" {
		return nil, nil //nolint:nilnil // no Redis is no error
	}
	metrics, err := redisguard.NewMetrics(p.registry)
	if err != nil {
		return nil, err
	}
	return redisguard.New(details.NewClient(opts.Redis.Details()), redisguard.Config{Prefix: opts.Redis.KeyPrefix, Budget: opts.Redis.Timeout, Metrics: metrics}), nil
}

// version identifies the builder of a record: the release, or the commit of a build that
// is no release.
func version(build buildinfo.Info) string {
	if build.Version == buildinfo.Unstamped {
		return build.Revision
	}
	return build.Version
}
