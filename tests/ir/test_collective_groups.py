"""What the ids of replica_groups count, which is one meaning for inference and verification."""
import pytest

import xlac

GATHER = """HloModule m, {module}
ENTRY e {{
  x = f32[4] parameter(0)
  ROOT y = f32[{n}] all-gather(x), replica_groups={groups}, channel_id=1{ids}, dimensions={{0}}
}}
"""
CASES = [  # module, groups, use_global_device_ids, participants
    ("replica_count=2, num_partitions=3", "{{0,1}}", "", 6), ("replica_count=2, num_partitions=3", "{{0,1}}", "false", 6),
    ("replica_count=2, num_partitions=3", "{}", "", 6), ("replica_count=2, num_partitions=3", "{}", "false", 6),
    ("replica_count=2, num_partitions=3", "{{0,1,2},{3,4,5}}", "true", 3)]


@pytest.mark.parametrize("module, groups, ids, participants", CASES)
def test_absent_global_ids_mean_false(module, groups, ids, participants):
    ids = ids and f", use_global_device_ids={ids}"
    xlac.verify(GATHER.format(module=module, groups=groups, ids=ids, n=4 * participants))
    with pytest.raises(xlac.VerifyError, match=rf"f32\[{4 * participants}\]"):
        xlac.verify(GATHER.format(module=module, groups=groups, ids=ids, n=4))


def test_ids_of_an_op_without_global_ids_count_partitions():
    text = """HloModule m, replica_count=2, num_partitions=3
ENTRY e {
  x = f32[6,2] parameter(0)
  ROOT y = f32[6,2] all-to-all(x), replica_groups={{0,1,2}}, channel_id=1, dimensions={0}
}
"""
    xlac.verify(text)
    with pytest.raises(xlac.VerifyError, match="2 partitions, but the module runs 3"):
        xlac.verify(text.replace("{{0,1,2}}", "{{0,1}}"))
