package strictarp

import (
	"context"
	"errors"

	"github.com/strictarp/strictarp/sysctl"
)

// SysctlExecutor carries out steps of action SetSysctl on one node.
//
// Not net/ipv4/ip_forward and conf/all/forwarding: the kernel changes other
// settings along with them, which the undo of a step would not restore.
type SysctlExecutor struct {
	Node string      // whose steps it carries out
	Tree sysctl.Tree // of the node's network namespace
}

// Handles implements Executor.
func (x SysctlExecutor) Handles(s Step) bool {
	key, err := sysctl.ParseKey(s.Object)
	return err == nil && s.Action == SetSysctl && s.Node == x.Node &&
		key != "net/ipv4/ip_forward" && key != "net/ipv4/conf/all/forwarding"
}

// Read implements Executor. The error is that of sysctl.Tree.Get.
func (x SysctlExecutor) Read(_ context.Context, s Step) (string, error) {
	key, err := sysctl.ParseKey(s.Object)
	if err != nil {
		return "", err
	}
	value, err := x.Tree.Get(key)
	if err != nil {
		return "", err
	}
	for _, same := range []string{s.To, s.From} {
		if sysctl.SameValue(value, same) {
			return same, nil
		}
	}
	return value, nil
}

// Do implements Executor. The error is that of sysctl.Apply otherwise.
func (x SysctlExecutor) Do(ctx context.Context, s Step) error {
	key, err := sysctl.ParseKey(s.Object)
	if err != nil {
		return err
	}
	from := s.From
	if from == "" {
		if from, err = x.Tree.Get(key); err != nil {
			return err
		}
	}
	_, err = sysctl.Apply(ctx, x.Tree, []sysctl.Change{{Key: key, From: from, To: s.To}})
	var conflict *sysctl.ConflictError
	if errors.As(err, &conflict) {
		return &ConflictError{Step: s, Found: conflict.Found, Err: err}
	}
	return err
}
