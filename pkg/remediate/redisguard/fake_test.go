// SPDX-License-Identifier: Apache-2.0

package redisguard

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a Redis that answers what a test says. Any other call of it is a nil
// pointer, which ends the test.
type fake struct {
	redis.Scripter
	answer func(ctx context.Context, command string, args []any) (any, error)
	calls  []string
}

func (f *fake) do(ctx context.Context, command string, args []any) *redis.Cmd {
	f.calls = append(f.calls, command)
	reply, err := f.answer(ctx, command, args)
	cmd := redis.NewCmd(ctx)
	cmd.SetVal(reply)
	cmd.SetErr(err)
	return cmd
}

func (f *fake) Eval(ctx context.Context, _ string, _ []string, args ...any) *redis.Cmd {
	return f.do(ctx, "eval", args)
}

func (f *fake) EvalSha(ctx context.Context, _ string, _ []string, args ...any) *redis.Cmd {
	return f.do(ctx, "evalsha", args)
}

func (f *fake) EvalRO(ctx context.Context, _ string, _ []string, args ...any) *redis.Cmd {
	return f.do(ctx, "eval_ro", args)
}

func (f *fake) EvalShaRO(ctx context.Context, _ string, _ []string, args ...any) *redis.Cmd {
	return f.do(ctx, "evalsha_ro", args)
}

// saying is a fake that answers every question so, and stores every copy.
func saying(words ...any) *fake {
	return &fake{answer: func(_ context.Context, command string, args []any) (any, error) {
		if command == "evalsha" {
			return []any{"stored", fmt.Sprint(args[0])}, nil
		}
		return words, nil
	}}
}

// failing is a fake whose calls all fail.
func failing(err error) *fake {
	return &fake{answer: func(context.Context, string, []any) (any, error) { return nil, err }}
}

func someRequest(n string) ledger.Request {
	return ledger.Request{Step: ledger.Step{Namespace: "shop", PlanName: "plan", PlanUID: n}, PolicyUID: "p", TargetUID: "t" + n}
}
