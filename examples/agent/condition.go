package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// nodeClient is the part of client-go's typed client of Nodes that is used.
type nodeClient interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*corev1.Node, error)
	List(ctx context.Context, opts metav1.ListOptions) (*corev1.NodeList, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*corev1.Node, error)
}

// recheck is how often the Node is read, for it may have been made anew, or its
// condition removed by hand.
const recheck = 10 * time.Minute

// nodeCondition keeps a Node's condition as it should be. A Lease is the
// heartbeat, so the condition is written only when it changes.
type nodeCondition struct {
	client  nodeClient
	node    string
	have    *corev1.NodeCondition // as it was read or written last; nil if it has none
	uid     types.UID
	checked time.Time // zero if it is not known what is there
	wrote   time.Time // the last time
	nodes   int       // how many the cluster has; 0 if that is not known
	unknown error     // why it is not
}

// look reads the Node if that was not done lately.
func (n *nodeCondition) look(ctx context.Context) error {
	if since := time.Since(n.checked); !n.checked.IsZero() && since < recheck {
		return nil
	}
	node, err := n.client.Get(ctx, n.node, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read node/%s: %w: does it have that name (--node), and may this be read (get nodes)?", n.node, err)
	}
	n.have, n.uid, n.checked = nil, node.UID, time.Now()
	for _, c := range node.Status.Conditions {
		if c.Type == conditionType {
			n.have = &c
		}
	}
	n.unknown = n.count(ctx)
	return nil
}

// count finds out how many nodes there are: the API server says how many it has
// besides the one that is asked for.
func (n *nodeCondition) count(ctx context.Context) error {
	list, err := n.client.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("count nodes: %w: may they be listed (list nodes)?", err)
	}
	n.nodes = len(list.Items)
	if list.RemainingItemCount != nil {
		n.nodes += int(*list.RemainingItemCount)
	}
	return nil
}

// set writes the condition if it is another one, and reports whether it wrote. For
// other words alone, such as how many VIPs there are, it waits: all who follow Nodes
// are told of each write.
func (n *nodeCondition) set(ctx context.Context, want corev1.NodeCondition) (bool, error) {
	if n.have != nil && n.have.Status == want.Status && n.have.Reason == want.Reason &&
		(n.have.Message == want.Message || time.Since(n.wrote) < recheck) {
		return false, nil
	}
	want.LastHeartbeatTime, want.LastTransitionTime = metav1.Now(), metav1.Now()
	if n.have != nil && n.have.Status == want.Status {
		want.LastTransitionTime = n.have.LastTransitionTime
	}
	// By this kind of patch other conditions stay, as node-problem-detector and the
	// kubelet write theirs (their key is the type).
	data, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{want}}})
	if err != nil {
		return false, err
	}
	if _, err := n.client.Patch(ctx, n.node, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status"); err != nil {
		n.checked = time.Time{}
		return false, fmt.Errorf("set condition %s of node/%s: %w: may it be written (patch nodes/status)?", conditionType, n.node, err)
	}
	n.have, n.wrote = &want, time.Now()
	return true, nil
}
