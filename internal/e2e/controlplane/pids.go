package controlplane

// PIDs returns the process numbers of etcd and of the kube-apiserver that runs now.
func (c *ControlPlane) PIDs() (etcd, server int) { return c.etcd.PID(), c.server.PID() }
