"""Names of all operations that the public sources use or define, to tell a misspelling from a
new operation."""

from __future__ import annotations

from xdsl.dialects import arith, cf, func, scf

from pto.dialect.tile_operations import SIGNATURES

BUFFER_OPERATIONS = tuple(f"pto.{name}" for name in ("and", "cast", "duplicate", "mulcast"))
"""Those on the unified buffer (`buffer_ops`)."""

_REGISTER = """
    addptr castptr get_ctrl get_deqscale pge_b16 pge_b32 pge_b8 plt_b16 plt_b32
    plt_b8 pset_b16 pset_b32 pset_b8 sbitset0 sbitset1 set_ctrl set_deqscale tile_buf_addr
    tile_valid_cols tile_valid_rows vcvt vecscope vlds vsts vtrc
"""
REGISTER_OPERATIONS = tuple(f"pto.{name}" for name in _REGISTER.split())
"""Those on registers and on the state of the machine (`register_ops`)."""
SYNC_OPERATIONS = tuple(f"pto.{name}" for name in ("barrier", "set_flag", "wait_flag"))
"""Those that order the pipes of a core (`sync_ops`)."""

_VMI = """
    absf absi active_prefix_index addf addi andi bitcast broadcast channel_merge
    channel_split cmpf cmpi compress compress_store constant constant_mask create_group_mask
    create_mask deinterleave_load divf ensure_layout ensure_mask_granularity
    ensure_mask_layout exp expand_load extf extsi extui fma fptosi fptoui gather
    group_broadcast group_broadcast_load group_iota group_load group_reduce_addf
    group_reduce_addi group_reduce_maxf group_reduce_maxi group_reduce_minf
    group_reduce_mini group_slot_load group_store interleave_store iota ln load mask_and
    mask_not mask_or mask_xor masked_load masked_store maxf maxi minf mini mulf muli negf
    negi not ori pack pge plt pset reduce_addf reduce_addi reduce_maxf reduce_maxi
    reduce_minf reduce_mini relu scatter select shli shrsi shrui shuffle sitofp sqrt store
    stride_load stride_store subf subi truncf trunci unpack vabs vadd vaddc vaddcs vadds
    vand vaxpy vbrc vcadd vchist vci vcmax vcmin vcmp vcmps vcvt vdhist vdintlv vdiv vexp
    vexpdif vgather vgatherb vinterpret_cast vintlv vln vload vlrelu vmax vmaxs vmin vmins
    vmul vmula vmull vmuls vneg vnot vor vprelu vrelu vscatter vsel vselr vshl vshls vshr
    vshrs vsqrt vsstb vstore vsub vxor xori
"""

# Those of no table and of no class.
_OTHER = """
    absf absi active_prefix_index addf addi aic_initialize_pipe aiv_initialize_pipe
    alloc_multi_tile alloc_tile andi atomic_add atomic_and atomic_cas atomic_exch atomic_max
    atomic_min atomic_or atomic_sub atomic_xor barrier_sync bitcast broadcast
    build_async_session ceil channel_merge channel_split chistv2 cmo.cacheinvalid cmpf cmpi
    comm.build_async_session comm.tbroadcast comm.test_async_event comm.tgather comm.tget
    comm.tget_async comm.tnotify comm.tput comm.tput_async comm.treduce comm.tscatter
    comm.ttest comm.twait comm.wait_async_event compress compress_store constant
    constant_mask convert copy_cbuf_to_bt copy_cbuf_to_fbuf copy_cbuf_to_ubuf
    copy_gm_to_cbuf copy_gm_to_cbuf_multi_dn2nz copy_gm_to_cbuf_multi_nd2nz copy_gm_to_ubuf
    copy_matrix_cc_to_cbuf copy_matrix_cc_to_gm copy_matrix_cc_to_ub copy_ubuf_to_cbuf
    copy_ubuf_to_gm copy_ubuf_to_ubuf cos create_cbuf_matrix create_group_mask create_mask
    dcci declare_eventid_array declare_global declare_local_array declare_struct
    declare_tile deinterleave_load dhistv2 divf dsb ensure_layout ensure_mask_granularity
    ensure_mask_layout eventid_array_get eventid_array_set exp expand_load extf extsi extui
    fence.barrier_all floor fma fmax fmin fptosi fptoui fusion_region gather get_block_dim_x
    get_block_dim_y get_block_dim_z get_block_idx get_block_idx_x get_block_idx_y
    get_block_idx_z get_block_num get_buf get_buf_dyn get_clock32 get_clock64 get_grid_dim_x
    get_grid_dim_y get_grid_dim_z get_laneid get_lanemask_eq get_lanemask_ge get_lanemask_gt
    get_lanemask_le get_lanemask_lt get_prefetch_async_session get_subblock_idx
    get_subblock_num get_tensor_view_dim get_tensor_view_stride get_tid_x get_tid_y
    get_tid_z get_validshape get_veccoreid get_vms4_sr group_broadcast group_broadcast_load
    group_iota group_load group_reduce_addf group_reduce_addi group_reduce_maxf
    group_reduce_maxi group_reduce_minf group_reduce_mini group_slot_load group_store
    import_reserved_buffer init_align initialize_l2g2l_pipe initialize_l2l_pipe
    interleave_store inttoptr iota keep ld_dev ldg ln load load_cbuf_to_ca
    load_cbuf_to_ca_mx load_cbuf_to_ca_s4 load_cbuf_to_cb load_cbuf_to_cb_mx
    load_cbuf_to_cb_s4 load_scalar local_array_get local_array_set log mad mad_acc mad_bias
    mad_bias_raw mad_mx mad_mx_acc mad_mx_bias mad_mx_bias_raw mad_mx_raw mad_raw
    make_prefetch_async_context make_tensor_view mask_and mask_not mask_or mask_xor
    masked_load masked_store maxf maxi mem_bar minf mini mte_gm_l1 mte_gm_l1_frac mte_gm_ub
    mte_l0c_gm mte_l0c_l1 mte_l0c_ub mte_l1_bt mte_l1_fb mte_l1_l0a mte_l1_l0a_mx mte_l1_l0b
    mte_l1_l0b_mx mte_l1_ub mte_ub_gm mte_ub_l1 mte_ub_ub mul_i32toi64 mulf mulhi muli
    multi_buffer_addrs multi_tile_get negf negi not ori pack pand partition_view pbitcast
    pdintlv_b16 pdintlv_b32 pdintlv_b8 pge pintlv_b16 pintlv_b32 pintlv_b8 pldi plds plt
    pltm_b16 pltm_b32 pltm_b8 pnot por pow ppack print prmt psel pset psti psts pstu
    ptrtoint punpack pxor raw_fill_l1 record_event reduce_addf reduce_addi reduce_maxf
    reduce_maxi reduce_minf reduce_mini redux_add redux_max redux_min relu reserve_buffer
    resume rint rls_buf rls_buf_dyn round scatter section.cube section.simt section.vector
    select set_atomic_add set_atomic_bf16 set_atomic_f16 set_atomic_f32 set_atomic_max
    set_atomic_min set_atomic_none set_atomic_s16 set_atomic_s32 set_atomic_s8
    set_channel_para set_cross_block set_ffts set_fix_clip_relu set_flag_dyn
    set_fpc set_intra_block set_loop1_stride_outtol1 set_loop1_stride_outtoub
    set_loop1_stride_ubtoout set_loop2_stride_outtol1 set_loop2_stride_outtoub
    set_loop2_stride_ubtoout set_loop3_para set_loop_size_outtol1 set_loop_size_outtoub
    set_loop_size_ubtoout set_mov_pad_val set_mte2_nz_para set_pad_val_outtol1 set_quant_pre
    set_quant_scalar set_quant_vector set_relu_alpha set_store_atomic_cfg set_validshape
    shli shrsi shrui shuffle shuffle_bfly shuffle_down shuffle_idx shuffle_up simt_launch
    sin sitofp sprclr sprsti sprsts sqrt st_dev stg store store_scalar store_vfsimt_info
    strict_vecscope stride_load stride_store struct_get struct_set subf subi subset subview
    sync.set sync.wait syncall syncthreads talloc talloc_to_aic talloc_to_aiv tassign
    tensor_view_addr test_async_event textract_fp tfillpad_expand tfillpad_inplace tfree
    tfree_from_aic tfree_from_aiv tget_async tgetval threadfence threadfence_block
    tinsert_fp tmov.fp tpack tpop tpop_from_aic tpop_from_aiv tprefetch_async tpush
    tpush_to_aic tpush_to_aiv tput_async trap treshape truncf trunci tstore_fp tsync
    ub.set_mask ub.set_mask_count ub.set_mask_norm ub.vabs ub.vadd ub.vaddrelu ub.vadds
    ub.vand ub.vdiv ub.vdup ub.vexp ub.vln ub.vmax ub.vmaxs ub.vmin ub.vmins ub.vmul
    ub.vmuls ub.vnot ub.vor ub.vrelu ub.vrsqrt ub.vshl ub.vshr ub.vsqrt ub.vsub unpack uvld
    vabs vadd vaddc vaddcs vaddreluconv vadds vand vaxpy vbitcast vbitsort vbr vbrc vcadd
    vcbmax vcbmin vcgadd vcgmax vcgmin vchist vci vcmax vcmin vcmp vcmps vcpadd vdhist
    vdintlv vdintlvv2 vdiv vdup vexp vexpdif vgather vgather2 vgather2_bc vgatherb
    vinterpret_cast vintlv vintlvv2 vldas vldsx2 vldus vln vload vlrelu vmadd vmax vmaxs
    vmin vmins vmrgsort4 vmul vmula vmulconv vmull vmuls vmulscvt vneg vnot vor vote_all
    vote_any vote_ballot vote_uni vpack vprelu vrelu vscatter vsel vselr vselrv2 vshl vshls
    vshr vshrs vsldb vsqrt vsqz vsstb vstar vstas vstore vstsx2 vstur vstus vsub vsubc
    vsubcs vsunpack vusqz vxor vzunpack wait_async_event wait_cross_block wait_event
    wait_flag_dyn wait_intra_block xori yield
"""

# Those of MLIR's dialects that xDSL lacks.
_NOT_IN_XDSL = """
    arith.index_castui arith.remf arith.scaling_extf arith.scaling_truncf func.call_indirect
    func.constant scf.forall
"""
_DIALECTS = (arith.Arith, cf.Cf, func.Func, scf.Scf)

KNOWN_OPERATIONS: frozenset[str] = frozenset(
    [
        *SIGNATURES,
        *BUFFER_OPERATIONS,
        *REGISTER_OPERATIONS,
        *SYNC_OPERATIONS,
        *(f"pto.{name}" for name in _OTHER.split()),
        *(f"pto.vmi.{name}" for name in _VMI.split()),
        *(op.name for dialect in _DIALECTS for op in dialect.operations),
        *("builtin.module", "builtin.unrealized_conversion_cast"),
        *_NOT_IN_XDSL.split(),
    ]
)
