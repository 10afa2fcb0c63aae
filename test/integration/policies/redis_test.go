// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// startRedis starts a real Redis with the arguments and the ACL of the chart, in
// which our user gets in; only port, address and the ACL's path differ. Values are
// arguments of `helm template`. It returns address and password.
func startRedis(t *testing.T, values ...string) (address, password string) {
	t.Helper()
	objects, err := apiserver.Render(t.Context(), helm, values...)
	if err != nil {
		t.Fatal(err)
	}
	var secret *corev1.Secret
	var redisArgs []string
	for _, o := range objects {
		switch rendered.ID(o) {
		case "Secret/plumbline-system/plumbline-redis":
			secret, err = rendered.Convert[corev1.Secret](o)
		case "Deployment/plumbline-system/plumbline-redis":
			var d *appsv1.Deployment
			if d, err = rendered.Convert[appsv1.Deployment](o); err == nil {
				redisArgs = d.Spec.Template.Spec.Containers[0].Args
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	acl := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(acl, secret.Data["users.acl"], 0o600); err != nil {
		t.Fatal(err)
	}
	port := freeport.For(t)
	login := redis.Options{Addr: "127.0.0.1:" + strconv.Itoa(port), Username: "plumbline", Password: string(secret.Data["password"])}
	args := slices.Concat(redisArgs, []string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--aclfile", acl})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	running, err := server.StartRedisWith(ctx, login, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		running.Kill()
		if t.Failed() {
			t.Logf("redis-server said\n%s", running.Said())
		}
	})
	return login.Addr, login.Password
}

func TestTheRedisUserMayUseStreamsUnderOurPrefixAndNothingElse(t *testing.T) {
	address, password := startRedis(t)
	plumbline := connect(t, &redis.Options{Addr: address, Username: "plumbline", Password: password})
	tests := map[string]struct {
		command []any
		refused bool
	}{
		"append a detail":                {[]any{"XADD", "plumbline:details", "MAXLEN", "~", "100000", "*", "r", "{}"}, false},
		"trim by age":                    {[]any{"XTRIM", "plumbline:details", "MINID", "~", "0-1"}, false},
		"read a range":                   {[]any{"XRANGE", "plumbline:details", "-", "+"}, false},
		"read from a position":           {[]any{"XREAD", "COUNT", "10", "STREAMS", "plumbline:details", "0"}, false},
		"describe the stream":            {[]any{"XINFO", "STREAM", "plumbline:details"}, false},
		"ask the time":                   {[]any{"TIME"}, false},
		"append to somebody else's key":  {[]any{"XADD", "others:details", "*", "r", "{}"}, true},
		"a prefix that only looks alike": {[]any{"XADD", "plumbline2:details", "*", "r", "{}"}, true},
		"delete a key":                   {[]any{"DEL", "plumbline:details"}, true},
		"flush everything":               {[]any{"FLUSHALL"}, true},
		"list keys":                      {[]any{"KEYS", "*"}, true},
		"read the configuration":         {[]any{"CONFIG", "GET", "*"}, true},
		"list users":                     {[]any{"ACL", "LIST"}, true},
		"run a script":                   {[]any{"EVAL", "return 1", "0"}, true},
		"kill a client":                  {[]any{"CLIENT", "KILL", "TYPE", "normal"}, true},
		"subscribe":                      {[]any{"PUBLISH", "plumbline:x", "y"}, true},
		"stop the server":                {[]any{"SHUTDOWN", "NOSAVE"}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := plumbline.Do(t.Context(), test.command...).Err()
			if refused := err != nil && strings.HasPrefix(err.Error(), "NOPERM"); refused != test.refused {
				t.Errorf("%v: error %v, refused should be %v", test.command, err, test.refused)
			}
		})
	}
	strangers := map[string]*redis.Options{
		"nobody":                {Addr: address},
		"a wrong password":      {Addr: address, Username: "plumbline", Password: "guess"},
		"the default user":      {Addr: address, Username: "default", Password: password},
		"the password as admin": {Addr: address, Username: "admin", Password: password},
	}
	for name, options := range strangers {
		t.Run(name, func(t *testing.T) {
			if err := connect(t, options).Ping(t.Context()).Err(); err == nil {
				t.Error("got in")
			}
		})
	}
}

// What the copies of ledgers need is there with the executor and not before, and a
// script may do no more than its caller.
func TestTheRedisUserMayRunScriptsOverCopiesOfLedgersForTheExecutor(t *testing.T) {
	address, password := startRedis(t, "--set", "executor.enabled=true")
	plumbline := connect(t, &redis.Options{Addr: address, Username: "plumbline", Password: password})
	const own = "plumbline:mirror:{production/u}"
	script := func(text, key string) []any { return []any{"EVAL", text, "1", key} }
	tests := map[string]struct {
		command []any
		refused bool
	}{
		"store a copy":                          {script(`redis.call('DEL', KEYS[1]); redis.call('HSET', KEYS[1], 'sequence', 1); return redis.call('EXPIRE', KEYS[1], 60)`, own), false},
		"ask a copy":                            {[]any{"EVAL_RO", `return {redis.call('HGET', KEYS[1], 'a'), redis.call('HMGET', KEYS[1], 'a', 'b')}`, "1", own}, false},
		"append a detail":                       {[]any{"XADD", "plumbline:details", "*", "r", "{}"}, false},
		"a script over the details":             {script(`return redis.call('DEL', KEYS[1])`, "plumbline:details"), true},
		"a script over somebody else's key":     {script(`return 1`, "others:mirror:x"), true},
		"a script that goes beyond its keys":    {script(`return redis.call('HSET', 'others', 'a', 'b')`, own), true},
		"a script that flushes everything":      {script(`return redis.call('FLUSHALL')`, own), true},
		"a script that reads the settings":      {script(`return redis.call('CONFIG', 'GET', '*')`, own), true},
		"a script that writes a plain value":    {script(`return redis.call('SET', KEYS[1], 'x')`, own), true},
		"delete the details":                    {[]any{"DEL", "plumbline:details"}, true},
		"forget all scripts":                    {[]any{"SCRIPT", "FLUSH"}, true},
		"load a function":                       {[]any{"FUNCTION", "LOAD", "#!lua name=x\nredis.register_function('f', function() end)"}, true},
		"a copy under a prefix that looks like": {script(`return redis.call('DEL', KEYS[1])`, "plumbline:mirrors"), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := plumbline.Do(t.Context(), test.command...).Err()
			if refused := mayNot(err); refused != test.refused || (err != nil && !refused) {
				t.Errorf("%v: error %v, refused should be %v", test.command, err, test.refused)
			}
		})
	}
}

// mayNot says whether Redis refuses by the rights of the user, whose scripts it
// tells so in words of its own.
func mayNot(err error) bool {
	return err != nil && (strings.HasPrefix(err.Error(), "NOPERM") || strings.Contains(err.Error(), "The user executing the script can't") ||
		strings.Contains(err.Error(), "not allowed from script"))
}

func connect(t *testing.T, options *redis.Options) *redis.Client {
	t.Helper()
	c := redis.NewClient(options)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
