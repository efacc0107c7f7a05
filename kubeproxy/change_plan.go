package kubeproxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Plan reads the cluster and returns what c comes to, changing nothing. If a
// run of the same change was cut short, the plan goes on where it ended.
//
// Errors match fs.ErrNotExist if there is no such ConfigMap, key or DaemonSet,
// os.ErrPermission if they must not be read, errors.ErrUnsupported if the source
// is no ConfigMap that can be changed, *UnfinishedError if another change is
// unfinished, and those of Edit. Permissions that are missing and owners that
// would undo the change are no errors here, but of Plan.Apply.
func (cl Cluster) Plan(ctx context.Context, c Change) (*Plan, error) {
	p, err := cl.read(ctx, c)
	if err != nil {
		return nil, err
	}
	if r := p.Resumed; r != nil && (r.Undo || r.StrictARP != c.StrictARP || r.Key != c.Source.Key) {
		return nil, &UnfinishedError{Object: "configmap/" + p.backup.Name, Record: *r}
	}
	edited, err := Edit([]byte(p.Before), c.StrictARP)
	if err != nil {
		return nil, fmt.Errorf("plan a change of %s, key %s: %w", p.object(), c.Source.Key, err)
	}
	p.setAfter(edited.Text)
	p.record = Record{Phase: PhasePrepared, StrictARP: c.StrictARP, Key: c.Source.Key, Workload: c.Source.Workload}
	if p.Resumed != nil {
		p.record = *p.Resumed
	}
	return p, p.complete(ctx, p.Resumed != nil)
}

// PlanUndo reads the cluster and returns how to take back the last change that
// was made to c's source, finished or not. The text becomes what it was, byte
// by byte; if others edited it since, only strictARP becomes what it was. c's
// StrictARP does not matter, and its Verify is asked as with any change. What a
// strict kube-proxy set in the kernels stays until they boot. The error matches
// fs.ErrNotExist if there is no copy of the ConfigMap; else as Plan's.
func (cl Cluster) PlanUndo(ctx context.Context, c Change) (*Plan, error) {
	p, err := cl.read(ctx, c)
	if err != nil {
		return nil, err
	}
	if p.backup == nil {
		return nil, fmt.Errorf("kubeproxy: undo the change of configmap/%s: there is no configmap/%s: %w: was it changed? Else kubectl replace with the file that was kept",
			c.Source.Name, BackupName(c.Source.Name), fs.ErrNotExist)
	}
	if p.record, err = readRecord(p.backup); err != nil {
		return nil, err
	}
	if p.record.Key != c.Source.Key {
		return nil, fmt.Errorf("kubeproxy: undo the change of configmap/%s: what was changed is its key %q, not %q: %w", c.Source.Name, p.record.Key, c.Source.Key, fs.ErrNotExist)
	}
	original, err := p.original()
	if err != nil {
		return nil, fmt.Errorf("plan to undo the change of %s, key %s: %w", p.object(), c.Source.Key, err)
	}
	p.setAfter(original)
	p.Undo, p.Change.StrictARP = true, p.record.StrictARP
	// Pods may have been restarted already, so that they have to be again even if the
	// text is what it was.
	restart := p.record.Phase == PhaseRestarting || p.record.Undo && p.record.Phase == PhasePrepared
	p.record.Undo = true
	return p, p.complete(ctx, restart)
}

// original returns what the text is to be when the change is undone.
func (p *Plan) original() ([]byte, error) {
	if p.record.Undo && p.record.Phase == PhaseDone {
		return []byte(p.Before), nil
	}
	kept, err := readBackup(p.backup)
	if err != nil {
		return nil, err
	}
	text, ok := kept.Data[p.record.Key]
	if !ok {
		return nil, fmt.Errorf("the copy in configmap/%s has no such key: %w: restore it from the file that was kept", p.backup.Name, fs.ErrNotExist)
	}
	edited, err := Edit([]byte(text), p.record.StrictARP)
	if err == nil && string(edited.Text) == p.Before {
		return []byte(text), nil
	}
	was, err := Parse([]byte(text), ParseOptions{})
	if err != nil {
		return nil, err
	}
	edited, err = Edit([]byte(p.Before), was.StrictARP)
	return edited.Text, err
}

func (p *Plan) setAfter(text []byte) {
	p.After = string(text)
	p.Diff = unifiedDiff(p.Change.Source.Key, []byte(p.Before), text)
}

// read gets the objects and checks that they can be changed.
func (cl Cluster) read(ctx context.Context, c Change) (*Plan, error) {
	p, err := cl.readConfigMap(ctx, c)
	if err != nil {
		return nil, err
	}
	p.backup, err = cl.ConfigMaps.Get(ctx, BackupName(c.Source.Name), metav1.GetOptions{})
	if err := apiError("get", "configmap/"+BackupName(c.Source.Name), err); err != nil {
		p.backup = nil
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return p, nil
	}
	r, err := readRecord(p.backup)
	if err != nil {
		return nil, err
	}
	if r.Phase != PhaseDone {
		p.Resumed = &r
	}
	return p, nil
}

func (cl Cluster) readConfigMap(ctx context.Context, c Change) (*Plan, error) {
	if c.Source.Kind != SourceConfigMap || c.Source.Name == "" || c.Source.Key == "" {
		return nil, fmt.Errorf("kubeproxy: plan a change of %s %s: %w: only a key of a ConfigMap can be changed through the API server: edit the file on each node and restart kube-proxy there",
			c.Source.Kind, c.Source.Path, errors.ErrUnsupported)
	}
	p := &Plan{Change: c, cluster: cl}
	object := "configmap/" + c.Source.Name
	var err error
	if p.configMap, err = cl.ConfigMaps.Get(ctx, c.Source.Name, metav1.GetOptions{}); err != nil {
		return nil, apiError("get", object, err)
	}
	if ns := p.configMap.Namespace; ns != c.Source.Namespace {
		return nil, fmt.Errorf("kubeproxy: plan a change of %s in namespace %q: the client is of namespace %q: make clients of the Source's namespace", object, c.Source.Namespace, ns)
	}
	if p.configMap.Immutable != nil && *p.configMap.Immutable {
		return nil, fmt.Errorf("kubeproxy: plan a change of %s: it is immutable: %w: make another one and let the DaemonSet use that", object, errors.ErrUnsupported)
	}
	var ok bool
	if p.Before, ok = p.configMap.Data[c.Source.Key]; !ok {
		return nil, fmt.Errorf("kubeproxy: plan a change of %s: it has no key %q: %w", object, c.Source.Key, fs.ErrNotExist)
	}
	return p, nil
}

// complete adds the steps, and what is to be known before them. unfinished says
// that pods may run with another text than is there now.
func (p *Plan) complete(ctx context.Context, unfinished bool) error {
	c := p.Change
	edits := p.After != p.Before
	restarts := c.Restart == RestartAlways || c.Restart == RestartIfChanged && (edits || unfinished)
	if !edits && !restarts && p.Resumed == nil {
		return nil
	}
	object := "configmap/" + c.Source.Name
	backup := "configmap/" + BackupName(c.Source.Name)
	// Texts that others changed since an earlier run make it begin again.
	if p.Resumed == nil || edits || p.Undo != p.Resumed.Undo {
		p.record.Phase, p.record.RestartedAt = PhasePrepared, ""
		p.step(true, StepBackup, backup, "keep a copy of "+object+" and what is to be done")
	}
	p.step(edits, StepApply, object, "write the new text of "+c.Source.Key)
	if restarts {
		if err := p.readDaemonSet(ctx); err != nil {
			return err
		}
		text := "restart its pods: the update strategy replaces them"
		if onDelete(p.daemonSet) {
			text = "restart its pods: delete one at a time, since its update strategy is OnDelete"
		}
		p.step(true, StepRestart, c.Source.Workload, text)
		p.step(true, StepRollout, c.Source.Workload, "wait for each node's new pod and verify the node")
	}
	p.step(true, StepFinish, backup, "note that all is done")
	p.addOwners(object, Owners(p.configMap, "data", c.Source.Key))
	if p.daemonSet != nil {
		p.addOwners(c.Source.Workload, Owners(p.daemonSet))
	}
	if p.cluster.Access == nil {
		return nil
	}
	p.Permissions = p.needs()
	return ask(ctx, p.cluster.Access, p.Permissions)
}

func (p *Plan) step(needed bool, kind StepKind, object, text string) {
	if needed {
		p.Steps = append(p.Steps, Step{Kind: kind, Object: object, Text: text})
	}
}

func (p *Plan) addOwners(object string, owners []Owner) {
	for _, o := range owners {
		o.Object = object
		p.Owners = append(p.Owners, o)
	}
}

// object names the ConfigMap in errors.
func (p *Plan) object() string { return "configmap/" + p.configMap.Name }

func (p *Plan) readDaemonSet(ctx context.Context) error {
	name, ok := strings.CutPrefix(p.Change.Source.Workload, "daemonset/")
	if !ok || p.cluster.DaemonSets == nil || p.cluster.Pods == nil {
		return fmt.Errorf("kubeproxy: plan to restart %q: %w: only a daemonset/NAME can be restarted through the API server, with Cluster.DaemonSets and Cluster.Pods: set Change.Restart to RestartNever and restart kube-proxy otherwise",
			p.Change.Source.Workload, errors.ErrUnsupported)
	}
	ds, err := p.cluster.DaemonSets.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return apiError("get", p.Change.Source.Workload, err)
	}
	p.daemonSet = ds
	return nil
}

// needs returns the permissions that the steps need.
func (p *Plan) needs() []Permission {
	var all []Permission
	add := func(verb, group, resource, name string) {
		all = append(all, Permission{Verb: verb, Group: group, Resource: resource, Name: name, Namespace: p.configMap.Namespace})
	}
	backup := BackupName(p.configMap.Name)
	if p.backup == nil {
		add("create", "", "configmaps", "")
	}
	add("update", "", "configmaps", backup)
	if p.After != p.Before {
		add("update", "", "configmaps", p.configMap.Name)
	}
	if p.daemonSet != nil {
		add("get", "apps", "daemonsets", p.daemonSet.Name)
		add("patch", "apps", "daemonsets", p.daemonSet.Name)
		add("list", "", "pods", "")
		if onDelete(p.daemonSet) {
			add("delete", "", "pods", "")
		}
	}
	return all
}

func onDelete(ds *appsv1.DaemonSet) bool {
	return ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
}
